import torch
from vllm.platforms import current_platform
from vllm.platforms.interface import PlatformEnum

from omni_neuron.platform.vllm_platform import NeuronBasePlatform
from omni_neuron.runtime.host_memory import host_memory_bytes

MIB = 2**20


def test_it_is_the_platform_that_vllm_resolves_in_cpu_mode() -> None:
    assert isinstance(current_platform, NeuronBasePlatform)
    assert current_platform._enum == PlatformEnum.OOT
    assert current_platform.is_out_of_tree()


def test_in_cpu_mode_it_describes_the_cpu() -> None:
    platform = NeuronBasePlatform()
    assert torch.device(platform.device_name) == torch.device(platform.device_type) == torch.device("cpu")
    assert platform.dist_backend == "gloo"
    assert platform.get_device_name() == "cpu:0"
    assert not platform.is_pin_memory_available()
    assert platform.get_device_total_memory() == host_memory_bytes()


def test_memory_in_use_grows_with_what_is_allocated() -> None:
    before = NeuronBasePlatform.get_current_memory_usage()
    block = torch.ones(64 * MIB, dtype=torch.uint8)
    assert NeuronBasePlatform.get_current_memory_usage() - before > 32 * MIB
    assert block.numel() == 64 * MIB


def test_a_seed_reaches_torch() -> None:
    NeuronBasePlatform.manual_seed_all(3)
    first = torch.rand(2)
    NeuronBasePlatform.manual_seed_all(3)
    assert torch.equal(torch.rand(2), first)


def test_a_device_is_set_and_kernels_are_imported_without_any_effect() -> None:
    NeuronBasePlatform.set_device(torch.device("cpu"))
    NeuronBasePlatform.import_kernels()
