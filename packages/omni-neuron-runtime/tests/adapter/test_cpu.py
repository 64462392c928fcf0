from typing import Any

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.fx.experimental.proxy_tensor import make_fx

from omni_neuron.runtime.adapter.cpu import CpuAdapter
from omni_neuron.runtime.errors import SetupError
from omni_neuron.runtime.host_memory import host_memory_bytes


def test_groups_are_found_by_name() -> None:
    adapter = CpuAdapter()
    adapter.register_replica_groups("tp", [[0, 1], [3, 2]])
    assert adapter.replica_groups("tp") == ((0, 1), (3, 2))
    adapter.register_replica_groups("tp", [[0], [1]])
    assert adapter.replica_groups("tp") == ((0,), (1,))
    with pytest.raises(KeyError):
        adapter.replica_groups("cp")


def test_the_machine_is_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    adapter = CpuAdapter()
    gelu = torch.nn.functional.gelu
    adapter.synchronize()
    adapter.restore_gelu()
    assert torch.nn.functional.gelu is gelu
    assert adapter.hbm_bytes() == host_memory_bytes()
    assert adapter.logical_core_count() == 0
    assert adapter.compile_backend() is None
    assert adapter.process_group_backend() == "gloo"
    assert adapter.platform_target() == "cpu"
    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", "trn2")
    assert adapter.platform_target() == "trn2"


def test_an_operator_runs_and_traces() -> None:
    def double_it(x: torch.Tensor) -> torch.Tensor:
        assert not isinstance(x, FakeTensor)
        return x * 2

    operator = CpuAdapter().nki_op("omni_neuron_test::double_it", double_it, torch.empty_like)
    x = torch.arange(3.0)
    assert torch.equal(operator(x), x * 2)
    graph = make_fx(lambda y: operator(y) + 1, tracing_mode="fake")(x)
    assert torch.ops.omni_neuron_test.double_it.default in {node.target for node in graph.graph.nodes}
    assert torch.equal(graph(x), x * 2 + 1)


def test_an_operator_may_change_its_argument() -> None:
    def fill_with_one(x: torch.Tensor) -> None:
        x.fill_(1)

    operator = CpuAdapter().nki_op(
        "omni_neuron_test::fill_with_one", fill_with_one, lambda x: None, mutates_args=("x",)
    )
    x = torch.zeros(2)
    operator(x)
    assert torch.equal(x, torch.ones(2))


def test_a_kernel_needs_the_switch_and_an_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    adapter = CpuAdapter()
    with pytest.raises(SetupError, match="set NKI_SIMULATOR=1"):
        adapter.wrap_nki(lambda: None)
    monkeypatch.setenv("NKI_SIMULATOR", "1")
    monkeypatch.setattr("omni_neuron.runtime.adapter.cpu.NKI_RUNTIME_GROUP", "omni_neuron.no_such_group")
    with pytest.raises(SetupError, match="no installed package offers"):
        adapter.wrap_nki(lambda: None)


def test_an_installed_interpreter_gets_the_kernel(importable: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    importable.add(
        "some-interpreter",
        "1.0",
        {"some_interpreter.py": "def simulate(kernel):\n    return lambda x: kernel(x)\n"},
    )
    points = importable.folder / "some_interpreter-1.0.dist-info" / "entry_points.txt"
    points.write_text("[omni_neuron.test_runtime]\nx = some_interpreter\n")
    monkeypatch.setattr("omni_neuron.runtime.adapter.cpu.NKI_RUNTIME_GROUP", "omni_neuron.test_runtime")
    monkeypatch.setenv("NKI_SIMULATOR", "1")
    assert CpuAdapter().nki().__name__ == "some_interpreter"
    kernels = {1: lambda x: x - 1, 2: lambda x: x + 1}
    assert CpuAdapter().wrap_nki(kernels)[2](4) == 5
    points.write_text("[omni_neuron.test_runtime]\nx = no_such_module\n")
    with pytest.raises(SetupError, match=r"no_such_module, which offers .* install its package anew"):
        CpuAdapter().nki()
    points.write_text("[omni_neuron.test_runtime]\nx = some_interpreter\ny = another\n")
    with pytest.raises(SetupError, match=r"another, some_interpreter all offer"):
        CpuAdapter().wrap_nki(lambda x: x)
