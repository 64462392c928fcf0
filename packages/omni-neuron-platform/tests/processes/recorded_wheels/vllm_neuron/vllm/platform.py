from event_log import record
from vllm.platforms.interface import Platform, PlatformEnum


class NeuronPlatform(Platform):
    _enum = PlatformEnum.OOT
    device_name = device_type = "neuron"
    ray_device_key = "neuron_cores"
    device_control_env_var = "NEURON_VISIBLE_DEVICES"

    @classmethod
    def set_device_count(cls, count):
        record("device count", count=count)

    @classmethod
    def set_device(cls, device):
        pass
