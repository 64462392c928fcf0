from types import SimpleNamespace
from typing import Any

import pytest
import torch
from vllm.utils.import_utils import resolve_obj_by_qualname
from vllm_omni.diffusion.attention.backends.abstract import AttentionMetadata
from vllm_omni.diffusion.data import OmniDiffusionConfig
from vllm_omni.diffusion.distributed.parallel_state import model_parallel_is_initialized
from vllm_omni.platforms import current_omni_platform

from omni_neuron.platform.lora import NoLoRAManager
from omni_neuron.platform.worker import NeuronDiffusionWorker
from omni_neuron.runtime.accuracy import assert_three_way
from omni_neuron.runtime.errors import InputError
from omni_neuron.runtime.mode import detect_mode
from omni_neuron.runtime.testing import run_on_device


@pytest.fixture(scope="module")
def worker(make_worker: Any) -> Any:
    return make_worker()


def test_a_worker_brings_up_its_world(worker: Any) -> None:
    assert torch.distributed.get_world_size() == 1
    assert model_parallel_is_initialized()
    assert worker.device == torch.device("cpu")


@pytest.mark.hardware
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("name", ["TORCH_SDPA", "FLASH_ATTN"])
def test_on_its_device_attention_errs_as_its_dtype_does(worker: Any, name: str, masked: bool) -> None:
    backend = resolve_obj_by_qualname(current_omni_platform.get_diffusion_attn_backend_cls(name, 64))
    site = backend.get_impl_cls()(2, 64, softmax_scale=64**-0.5)
    mask = torch.arange(40).expand(2, -1) < 31 if masked else None

    def attend(query: Any, key: Any, value: Any, mask: Any) -> Any:
        return site.forward(query, key, value, AttentionMetadata(attn_mask=mask))

    torch.manual_seed(0)
    inputs = torch.randn(3, 2, 40, 2, 64).bfloat16()
    rounded = tuple(inputs)
    exact = tuple(inputs.float())
    result = run_on_device(attend, *rounded, mask)
    assert result.dtype == torch.bfloat16
    assert_three_way(attend(*exact, mask), attend(*rounded, mask), result)


@pytest.mark.hardware
def test_its_device_is_the_one_that_tests_run_on(worker: Any) -> None:
    assert worker.device.type == ("neuron" if detect_mode().is_hardware else "cpu")
    assert worker.device == current_omni_platform.get_torch_device(worker.local_rank)


def test_vllms_configuration_knows_all_ranks(worker: Any, two_ranks: list[dict[str, Any]]) -> None:
    assert worker.vllm_config.parallel_config.world_size_across_dp == 1
    assert [found["world_size_for_vllm"] for found in two_ranks] == [2, 2]


@pytest.mark.parametrize("call", ["sleep", "wake_up"])
def test_sleep_and_wake_up_say_why_they_cannot(worker: Any, call: str) -> None:
    with pytest.raises(NotImplementedError, match=rf"{call} is not supported on Neuron"):
        getattr(worker, call)()


def test_its_lora_manager_serves_requests_without_an_adapter_and_refuses_the_others(worker: Any) -> None:
    worker.init_lora_manager()
    assert isinstance(worker.lora_manager, NoLoRAManager)
    assert worker.list_loras() == []
    with pytest.raises(InputError, match=r"style.*no LoRA"):
        worker.add_lora(SimpleNamespace(lora_name="style"))


def test_reports_come_in_rank_order_from_every_rank(worker: Any, two_ranks: list[dict[str, Any]]) -> None:
    (report,) = worker.rank_reports()
    assert report["latents_sha256"] is None
    assert report["peak_rss_anon_mib"] > 50  # torch alone
    assert (report["load_rise_mib"], report["weights_mib"]) == (None, 0)  # there is no pipeline yet
    reports = two_ranks[0]["reports"]
    assert reports == two_ranks[1]["reports"]
    names = ("latents_sha256", "load_rise_mib", "weights_mib")
    found = [tuple(report[name] for name in names) for report in reports]
    assert found == [("digest 0", 10.0, 1.0), ("digest 1", 11.0, 2.0)]


def test_a_configuration_that_cannot_run_is_refused_before_anything_is_set_up() -> None:
    config = OmniDiffusionConfig(model=None, model_class_name="WanPipeline", vae_use_tiling=True)
    with pytest.raises(InputError, match="vae_use_tiling is True"):
        NeuronDiffusionWorker(0, 0, config, skip_load_model=True)
