import ast
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import vllm_omni
from vllm.utils.import_utils import resolve_obj_by_qualname
from vllm_omni.diffusion.attention.backends.abstract import AttentionBackend
from vllm_omni.platforms import current_omni_platform
from vllm_omni.platforms.interface import OmniPlatformEnum

from omni_neuron.platform.platform import CPU_MODE_RANKS, NeuronOmniPlatform
from omni_neuron.runtime.errors import InputError
from omni_neuron.runtime.host_memory import host_memory_bytes

ENGINE = Path(vllm_omni.__file__).parent
DIFFUSION_PATH = ("diffusion", "engine", "entrypoints")
VISIBLE = "NEURON_VISIBLE_DEVICES"


def _asked_of(name: str) -> Iterator[str]:
    for folder in DIFFUSION_PATH:
        for path in sorted((ENGINE / folder).rglob("*.py")):
            text = path.read_text()
            if name not in text:
                continue
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.Attribute) and getattr(node.value, "id", None) == name:
                    yield node.attr


def test_the_engine_resolves_it() -> None:
    assert isinstance(current_omni_platform, NeuronOmniPlatform)
    assert current_omni_platform._omni_enum == OmniPlatformEnum.OOT
    assert current_omni_platform.is_out_of_tree()


def test_everything_that_the_diffusion_engine_asks_for_is_there() -> None:
    asked = set(_asked_of("current_omni_platform"))
    assert len(asked) > 40  # the search finds something
    missing = [name for name in sorted(asked) if getattr(current_omni_platform, name) is None]
    assert missing == []


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("empty_cache", None),
        ("get_device_capability", None),
        ("get_device_name", "cpu:0"),
        ("get_device_version", None),
        ("is_available", True),
        ("is_cuda", False),
        ("is_npu", False),
        ("is_pin_memory_available", False),
        ("is_sleep_mode_available", False),
        ("is_unspecified", False),
        ("memory_reserved", 0),
        ("record_device_event", None),
        ("requires_diffusion_paged_kv_prewrite", False),
        ("reset_peak_memory_stats", None),
        ("synchronize", None),
    ],
)
def test_what_the_engine_asks_without_arguments(name: str, answer: object) -> None:
    if hasattr(type(current_omni_platform), name):  # the engine's versions ask for different things
        found = getattr(current_omni_platform, name)()
        assert found == answer
        assert type(found) is type(answer)


def test_the_folder_of_stage_files_is_there() -> None:
    assert (ENGINE.parent / current_omni_platform.get_default_stage_config_path()).is_dir()


def test_the_memory_in_use_is_that_of_this_process() -> None:
    before = current_omni_platform.get_current_memory_usage()
    block = torch.ones(100 << 20, dtype=torch.uint8)
    grown = current_omni_platform.get_current_memory_usage() - before
    assert 0.9 * block.numel() < grown < 2 * block.numel()


def test_classes_are_named_by_paths_that_lead_to_them() -> None:
    for path in (
        current_omni_platform.get_diffusion_worker_cls(),
        current_omni_platform.get_diffusion_model_runner_cls(),
    ):
        assert path.rpartition(".")[2].startswith("NeuronDiffusion")
        assert isinstance(resolve_obj_by_qualname(path), type)
    backend = current_omni_platform.get_diffusion_attn_backend_cls(None, 128, allow_trtllm_default=True)
    assert issubclass(resolve_obj_by_qualname(backend), AttentionBackend)


def test_in_cpu_mode_nothing_is_compiled_and_nothing_is_offloaded() -> None:
    assert current_omni_platform.get_compile_backend() is None
    assert not current_omni_platform.supports_torch_inductor()
    assert not current_omni_platform.supports_cpu_offload()
    assert current_omni_platform.supports_float64()


def test_a_worker_has_one_device() -> None:
    assert current_omni_platform.get_torch_device(5) == torch.device("cpu")
    assert current_omni_platform.current_device() == 0
    assert not current_omni_platform.is_initialized()
    assert current_omni_platform.dist_backend == "gloo"


def test_ranks_are_as_many_as_a_host_has_cores_unless_cores_are_chosen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv(VISIBLE, raising=False)
    assert current_omni_platform.get_device_count() == CPU_MODE_RANKS
    monkeypatch.setenv(VISIBLE, "0-3,8")
    assert current_omni_platform.get_device_count() == 5


def test_chosen_cores_are_listed_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VISIBLE, raising=False)
    current_omni_platform.set_device_control_env_var("0-2")
    assert os.environ[VISIBLE] == "0,1,2"
    current_omni_platform.unset_device_control_env_var()
    assert VISIBLE not in os.environ


def test_all_memory_counts_as_free_because_no_allocator_keeps_count() -> None:
    total = host_memory_bytes()
    assert current_omni_platform.get_device_total_memory() == total
    assert current_omni_platform.get_free_memory() == total
    assert current_omni_platform.get_device_memory() == (total, total)
    assert current_omni_platform.max_memory_reserved() == current_omni_platform.max_memory_allocated() == 0


@pytest.mark.parametrize("name", ["get_omni_ar_worker_cls", "get_omni_generation_worker_cls"])
def test_language_stages_are_refused_with_a_reason(name: str) -> None:
    with pytest.raises(NotImplementedError, match="diffusion stages only"):
        getattr(current_omni_platform, name)()


def test_a_head_that_does_not_fit_is_refused_where_a_backend_is_chosen() -> None:
    with pytest.raises(InputError, match="head_size 256"):
        current_omni_platform.get_diffusion_attn_backend_cls(None, 256)
