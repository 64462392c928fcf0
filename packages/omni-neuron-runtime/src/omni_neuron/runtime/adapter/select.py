"""Which variant of the adapter this process uses."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

from omni_neuron.runtime import envs
from omni_neuron.runtime.adapter.base import NeuronAdapter
from omni_neuron.runtime.adapter.cpu import CpuAdapter
from omni_neuron.runtime.adapter.lite import LiteAdapter
from omni_neuron.runtime.adapter.torch_neuron import TorchNeuronAdapter
from omni_neuron.runtime.devices import DEVICE_FOLDER
from omni_neuron.runtime.errors import SetupError
from omni_neuron.runtime.lite_build import LITE_WHEEL, lite_remedy
from omni_neuron.runtime.mode import detect_mode
from omni_neuron.runtime.wheels import SearchPath, inspect_wheel

_VARIANTS: dict[str, Callable[[], NeuronAdapter]] = {
    "cpu": CpuAdapter,
    "lite": LiteAdapter,
    "torch_neuron": TorchNeuronAdapter,
}


def get_adapter(device_folder: Path = DEVICE_FOLDER) -> NeuronAdapter:
    """The adapter of this process: one object per variant, so that registered groups are found again.

    In hardware mode Lite before TorchNeuron, unless `VLLM_NEURON_LIBTORCH_NEURONX_LITE` decides; in every
    other mode the CPU variant. Raises SetupError when the wheel that is needed is absent, a placeholder or a
    wrong build.
    """
    return _instance(choose_variant(device_folder))


def choose_variant(device_folder: Path = DEVICE_FOLDER, path: SearchPath = None) -> str:
    """Name of the variant that `get_adapter` makes."""
    if not detect_mode(device_folder).is_hardware:
        return "cpu"
    wanted = envs.libtorch_neuronx_lite()
    lite = inspect_wheel(LITE_WHEEL, path)
    torch_neuron = inspect_wheel("torch-neuronx", path)
    if wanted is not False and lite.is_real:
        return "lite"
    if wanted is not True and torch_neuron.is_real:
        return "torch_neuron"
    asked = f" and {envs.libtorch_neuronx_lite.name}={int(wanted)}" if wanted is not None else ""
    raise SetupError(
        f"A Neuron device is present{asked}, but {LITE_WHEEL} is {lite.state.value} and torch-neuronx is "
        f"{torch_neuron.state.value}: {lite_remedy(path)}."
    )


@cache
def _instance(variant: str) -> NeuronAdapter:
    return _VARIANTS[variant]()
