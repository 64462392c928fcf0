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


def test_what_takes_no_arguments_has_an_answer() -> None:
    for name in (
        "current_device",
        "empty_cache",
        "get_compile_backend",
        "get_current_memory_usage",
        "get_default_stage_config_path",
        "get_device_capability",
        "get_device_count",
        "get_device_memory",
        "get_device_name",
        "get_device_total_memory",
        "get_device_version",
        "get_diffusion_model_runner_cls",
        "get_diffusion_worker_cls",
        "get_free_memory",
        "get_torch_device",
        "is_available",
        "is_cuda",
        "is_initialized",
        "is_npu",
        "is_pin_memory_available",
        "is_sleep_mode_available",
        "is_unspecified",
        "max_memory_allocated",
        "max_memory_reserved",
        "memory_reserved",
        "record_device_event",
        "requires_diffusion_paged_kv_prewrite",
        "reset_peak_memory_stats",
        "supports_cpu_offload",
        "supports_float64",
        "supports_torch_inductor",
        "synchronize",
    ):
        if hasattr(type(current_omni_platform), name):  # the engine's versions ask for different things
            getattr(current_omni_platform, name)()


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
