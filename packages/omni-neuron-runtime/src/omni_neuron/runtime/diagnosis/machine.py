"""The Neuron wheels, the mode, the environment and the shared memory of this machine."""

import shutil
from pathlib import Path

from omni_neuron.runtime import envs
from omni_neuron.runtime.devices import DEVICE_FOLDER
from omni_neuron.runtime.diagnosis.check import Check, fail, note, ok
from omni_neuron.runtime.env_var import declared
from omni_neuron.runtime.errors import InputError, SetupError
from omni_neuron.runtime.lite_build import LITE_WHEEL, lite_problem, lite_remedy
from omni_neuron.runtime.mode import Mode, command_mode
from omni_neuron.runtime.wheels import (
    NEURON_INDEX,
    SearchPath,
    Wheel,
    WheelState,
    inspect_wheel,
    inspect_wheels,
)

SHM_FOLDER = Path("/dev/shm")
# Workers hand finished videos over through shared memory. 81 frames of 480 x 832 in fp32 are 0.36 GiB;
# on hardware the published advice for containers is 2 GiB.
SHM_NEEDED_CPU = 1 << 29
SHM_NEEDED_HARDWARE = 1 << 31

ALWAYS_NEEDED = ("vllm-neuron", "neuronx-cc", "nki")
INSTALL_NEURON = (
    "with the wheels of uv build --all-packages --wheel run: pip install --find-links dist "
    f'--extra-index-url {NEURON_INDEX} "omni-neuron[neuron]"'
)


def check_mode(device_folder: Path = DEVICE_FOLDER, path: SearchPath = None) -> tuple[Mode | None, Check]:
    """The mode that a command would run in; None when it would refuse."""
    try:
        mode = command_mode(device_folder, path)
    except (InputError, SetupError) as error:
        finding, _, remedy = str(error).rstrip(".").partition(": ")
        return None, fail("mode", finding, remedy)
    return mode, ok("mode", f"{mode.kind.value}: {mode.reason}")


def check_environment(mode: Mode | None) -> list[Check]:
    """Every shared variable has a value that its rule allows, and none stands in the way of a worker."""
    checks = []
    for variable in declared(envs):
        try:
            variable()
        except InputError as error:
            checks.append(fail("environment", str(error), f"correct or unset {variable.name}"))
    blocking = envs.rt_visible_cores
    if mode is not None and mode.is_hardware and blocking.is_set():
        checks.append(
            fail("environment", f"{blocking.name} is set, each worker sets its own", f"unset {blocking.name}")
        )
    return checks or [ok("environment", "no variable has a value that stands in the way")]


def check_wheels(mode: Mode | None, path: SearchPath = None) -> list[Check]:
    """Every Neuron wheel: real, placeholder or absent; a lack counts only where hardware would run."""
    hardware = mode is not None and mode.is_hardware
    checks = [_check_wheel(wheel, hardware and wheel.name in ALWAYS_NEEDED) for wheel in inspect_wheels(path)]
    return checks + _check_library(hardware, path)


def check_shared_memory(mode: Mode | None, folder: Path = SHM_FOLDER) -> Check:
    """Free space for the videos that workers hand over; too little ends a worker with SIGBUS."""
    needed = SHM_NEEDED_HARDWARE if mode is not None and mode.is_hardware else SHM_NEEDED_CPU
    remedy = "start the container with --shm-size=2g or more"
    try:
        free = shutil.disk_usage(folder).free
    except OSError as error:
        return fail("shared memory", f"{folder} cannot be read ({error.strerror})", remedy)
    finding = f"{free / 2**30:.1f} GiB free in {folder}"
    if free < needed:
        return fail("shared memory", f"{finding}, {needed / 2**30:.1f} GiB are needed", remedy)
    return ok("shared memory", finding)


def _check_wheel(wheel: Wheel, needed: bool) -> Check:
    finding = wheel.state.value if wheel.version is None else f"{wheel.state.value}, version {wheel.version}"
    if wheel.is_real or (wheel.state is WheelState.ABSENT and not needed):
        return ok(wheel.name, finding)
    if needed:
        return fail(wheel.name, finding, INSTALL_NEURON)
    return note(
        wheel.name,
        f"{finding}: it holds no code and is of no use",
        f"run: pip uninstall {wheel.name}",
    )


def _check_library(hardware: bool, path: SearchPath) -> list[Check]:
    """Lite or TorchNeuron: one of them on hardware, a usable build, and not both."""
    lite, torch_neuron = inspect_wheel(LITE_WHEEL, path), inspect_wheel("torch-neuronx", path)
    checks = []
    if hardware and not lite.is_real and not torch_neuron.is_real:
        checks.append(
            fail("hardware library", "neither Lite nor TorchNeuron is really installed", lite_remedy(path))
        )
    if lite.is_real and torch_neuron.is_real:
        checks.append(
            note("hardware library", "torch-neuronx stands beside Lite", "run: pip uninstall torch-neuronx")
        )
    problem = lite_problem(path)
    if problem:
        make = fail if hardware else note
        checks.append(make("hardware library", problem, lite_remedy(path)))
    return checks
