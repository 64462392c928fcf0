import torch
from device_log import record


def register():
    record("compile backend", threads=torch.get_num_threads())
    return "neuron_native_lite"
