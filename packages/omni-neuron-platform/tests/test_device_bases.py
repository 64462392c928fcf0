from omni_neuron.platform.device_bases import device_platform, device_worker
from omni_neuron.platform.vllm_platform import NeuronBasePlatform


def test_without_a_device_the_platform_is_our_own_base() -> None:
    assert device_platform() is NeuronBasePlatform


def test_without_a_device_the_worker_has_no_second_base_with_a_behaviour() -> None:
    assert [name for name in vars(device_worker()) if not name.startswith("__")] == []
