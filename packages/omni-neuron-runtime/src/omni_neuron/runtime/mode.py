"""Where this process computes: on Neuron devices, on the CPU in their place, or nowhere.

Order of the decision: `VLLM_NEURON_CPU_MODE=1` means the CPU; else a device node means hardware; else the
plugin stays inactive and the engine remains what it is without it.
"""

from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from omni_neuron.runtime import envs
from omni_neuron.runtime.devices import DEVICE_FOLDER, chip_count
from omni_neuron.runtime.errors import InputError, SetupError
from omni_neuron.runtime.wheels import SearchPath, real_wheels


class ModeKind(Enum):
    HARDWARE = "hardware"
    CPU = "cpu"
    INACTIVE = "inactive"


@dataclass(frozen=True)
class Mode:
    """The mode and one sentence that says why."""

    kind: ModeKind
    reason: str

    @property
    def is_hardware(self) -> bool:
        return self.kind is ModeKind.HARDWARE

    @property
    def is_cpu(self) -> bool:
        return self.kind is ModeKind.CPU

    @property
    def is_active(self) -> bool:
        return self.kind is not ModeKind.INACTIVE


def detect_mode(device_folder: Path = DEVICE_FOLDER) -> Mode:
    """The mode that the environment and the device nodes ask for now.

    Raises InputError when CPU mode and CPU compilation are both asked for: they exclude each other.
    """
    if envs.cpu_mode() and envs.cpu_compile():
        raise InputError(
            f"{envs.cpu_mode.name}=1 and {envs.cpu_compile.name}=1 exclude each other: unset one of them."
        )
    if envs.cpu_mode():
        return Mode(ModeKind.CPU, f"{envs.cpu_mode.name}=1 is set.")
    if envs.cpu_compile():
        return Mode(ModeKind.INACTIVE, f"{envs.cpu_compile.name}=1 asks for compilation only.")
    chips = chip_count(device_folder)
    if chips:
        return Mode(
            ModeKind.HARDWARE, f"{chips} Neuron device node{'s' if chips > 1 else ''} in {device_folder}."
        )
    return Mode(
        ModeKind.INACTIVE,
        f"There is no Neuron device node in {device_folder} and {envs.cpu_mode.name} is not 1.",
    )


def command_mode(device_folder: Path = DEVICE_FOLDER, path: SearchPath = None) -> Mode:
    """The mode that a command would run in, without any change to the environment.

    A command falls back to the CPU on an ordinary machine. On a Neuron host whose devices are not visible it
    does not, because there the fallback would hide a fault. Raises SetupError in that case, and where the
    environment forbids every mode.
    """
    mode = detect_mode(device_folder)
    if mode.is_active:
        return mode
    if envs.cpu_compile():
        raise SetupError(f"{envs.cpu_compile.name}=1 only compiles: unset it to generate.")
    if envs.cpu_mode.is_set():
        name = envs.cpu_mode.name
        raise SetupError(
            f"No Neuron device is visible and {name}=0 forbids the CPU: unset it or set it to 1."
        )
    wheels = real_wheels(path)
    if wheels:
        names = ", ".join(f"{wheel.name} {wheel.version}" for wheel in wheels)
        raise SetupError(
            f"Neuron packages are installed ({names}) but {device_folder} holds no Neuron device: load the "
            f"driver or pass the devices to the container, or set {envs.cpu_mode.name}=1 to run on the CPU."
        )
    return Mode(
        ModeKind.CPU, f"There is no Neuron device node in {device_folder} and no Neuron package is installed."
    )


def enter_command_mode(device_folder: Path = DEVICE_FOLDER, path: SearchPath = None) -> str | None:
    """Settle the mode of a command, before vllm is imported.

    Sets `VLLM_NEURON_CPU_MODE=1` for this process and its children where `command_mode` chose the CPU by
    itself, and returns the one line that tells the user so; None when there was nothing to decide. On
    hardware it picks the native compile route where the user named none. InputError where a variable that
    decides about kernels has a bad value.
    """
    mode = command_mode(device_folder, path)
    for variable in (envs.nki_simulator, envs.disable_nki_kernels, envs.logical_nc_config):
        variable()  # a bad value is said now, and not by a worker in the middle of an engine's start
    if mode.is_hardware and not envs.backend():
        envs.backend.set("neuron_native")
    if not mode.is_cpu or envs.cpu_mode():
        return None
    envs.cpu_mode.set("1")
    return f"Running in CPU mode ({envs.cpu_mode.name}=1): no Neuron device was found."
