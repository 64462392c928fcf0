"""Everything that is known about this machine, in one object."""

from dataclasses import dataclass
from pathlib import Path

from omni_neuron.runtime.devices import DEVICE_FOLDER
from omni_neuron.runtime.diagnosis import machine, packages
from omni_neuron.runtime.diagnosis.check import Check, Status
from omni_neuron.runtime.mode import Mode
from omni_neuron.runtime.wheels import SearchPath


@dataclass(frozen=True)
class Diagnosis:
    """`mode` is what a command would run in, None when it would refuse to run."""

    mode: Mode | None
    checks: tuple[Check, ...]

    @property
    def can_generate(self) -> bool:
        return all(check.status is not Status.FAIL for check in self.checks)

    def as_dict(self) -> dict[str, object]:
        """The form that `--json` prints."""
        return {
            "can_generate": self.can_generate,
            "mode": None if self.mode is None else {"kind": self.mode.kind.value, "reason": self.mode.reason},
            "checks": [
                {
                    "name": check.name,
                    "status": check.status.value,
                    "finding": check.finding,
                    "remedy": check.remedy,
                }
                for check in self.checks
            ],
        }


def diagnose(
    device_folder: Path = DEVICE_FOLDER, shm_folder: Path = machine.SHM_FOLDER, path: SearchPath = None
) -> Diagnosis:
    """Look at this machine. `path` replaces `sys.path` as the place of installed packages."""
    mode, mode_check = machine.check_mode(device_folder, path)
    return Diagnosis(
        mode,
        (
            packages.check_python(),
            packages.check_ours(path),
            packages.check_engine(path),
            packages.check_torch(path),
            packages.check_libraries(path),
            *machine.check_wheels(mode, path),
            *machine.check_environment(mode),
            machine.check_shared_memory(mode, shm_folder),
            mode_check,
        ),
    )
