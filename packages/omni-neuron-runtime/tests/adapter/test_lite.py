"""Only the import surface: which member of the wheel each call reaches, and what is said when it is missing.

The modules below are written by this test with the paths that the published plugin imports; they stand for
names and not for a device.
"""

from typing import Any

import pytest
import torch

from omni_neuron.runtime.adapter.lite import LiteAdapter
from omni_neuron.runtime.errors import SetupError

ROOT = "libtorch_neuronx_lite"
FILES = {
    f"{ROOT}/__init__.py": "",
    f"{ROOT}/compile/__init__.py": "",
    f"{ROOT}/compile/platform.py": (
        "HBM_MEMORY_GB = {'trn2': 24, 'trn3': 36}\ntarget = 'trn3-rev2'\n"
        "def get_platform_target():\n    return target\n"
    ),
    f"{ROOT}/compile/native_backend.py": (
        "calls = 0\ndef register():\n    global calls\n    calls += 1\n    return 'neuron_native_lite'\n"
    ),
    f"{ROOT}/_compiler/__init__.py": (
        "waits = 0\ndef device_count():\n    return 64\n"
        "def synchronize():\n    global waits\n    waits += 1\n"
        "def nki_op(name, fn=None, mutates_args=()):\n    return ('op', name, fn, mutates_args)\n"
    ),
    f"{ROOT}/_compiler/distributed/__init__.py": "",
    f"{ROOT}/_compiler/distributed/mesh_registry.py": "_MESH_REGISTRY = {}\n",
    f"{ROOT}/nki/__init__.py": "",
    f"{ROOT}/nki/nki_hop.py": "def wrap_nki(kernel):\n    return {2: kernel}\n",
}


def install(site: Any, *without: str) -> None:
    version = torch.__version__.split("+")[0].rsplit(".", 1)[0] + ".0.1.0.2651"
    files = {name: text for name, text in FILES.items() if not any(part in name for part in without)}
    site.add("libtorch-neuronx-lite", version, files)


def test_every_member_is_reached(importable: Any) -> None:
    install(importable)
    adapter = LiteAdapter()
    assert adapter.platform_target() == "trn3-rev2"
    assert adapter.hbm_bytes() == 36 << 30
    assert adapter.logical_core_count() == 64
    assert adapter.nki_op("ns::op", len, max, ("x",)) == ("op", "ns::op", len, ("x",))
    assert adapter.wrap_nki(len)[2] is len
    assert adapter.process_group_backend() == "cpu:gloo,neuron:neuron"
    import libtorch_neuronx_lite._compiler as compiler

    adapter.synchronize()
    assert compiler.waits == 1


def test_the_backend_is_registered_once(importable: Any) -> None:
    install(importable)
    adapter = LiteAdapter()
    assert adapter.compile_backend() == adapter.compile_backend() == "neuron_native_lite"
    import libtorch_neuronx_lite.compile.native_backend as native_backend

    assert native_backend.calls == 1


def test_groups_reach_the_registry_as_lists(importable: Any) -> None:
    install(importable)
    adapter = LiteAdapter()
    adapter.register_replica_groups("cfg", ((12, 8), (0, 4)))
    from libtorch_neuronx_lite._compiler.distributed.mesh_registry import _MESH_REGISTRY

    assert _MESH_REGISTRY == {"cfg": [[12, 8], [0, 4]]}
    assert adapter.replica_groups("cfg") == ((12, 8), (0, 4))


@pytest.mark.parametrize(("target", "gib"), [("trn2", 24), ("trn9", 24), ("inf2", 24)])
def test_memory_of_a_target_that_the_table_lacks(importable: Any, target: str, gib: int) -> None:
    install(importable)
    adapter = LiteAdapter()
    import libtorch_neuronx_lite.compile.platform as platform

    platform.target = target
    assert adapter.hbm_bytes() == gib << 30


def test_gelu_is_the_operator_again(importable: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    install(importable)
    monkeypatch.setattr(torch.nn.functional, "gelu", lambda x: x)
    LiteAdapter().restore_gelu()
    x = torch.linspace(-2, 2, 5)
    expected = torch._C._nn.gelu(x, approximate="tanh")
    assert torch.equal(torch.nn.functional.gelu(x, approximate="tanh"), expected)


def test_the_build_without_compiler_is_refused_at_once(importable: Any) -> None:
    install(importable, "_compiler")
    with pytest.raises(SetupError, match=r"has no module _compiler.*SDK 2\.32: run: pip install .*2651"):
        LiteAdapter()


def test_a_missing_member_names_build_member_and_remedy(importable: Any) -> None:
    install(importable, "nki_hop")
    with pytest.raises(SetupError) as caught:
        LiteAdapter().wrap_nki(len)
    message = str(caught.value)
    assert "libtorch-neuronx-lite 2." in message
    assert "libtorch_neuronx_lite.nki.nki_hop.wrap_nki" in message
    assert "pip install" in message
    assert "\n" not in message
