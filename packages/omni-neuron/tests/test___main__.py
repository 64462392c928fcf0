import subprocess
import sys
from importlib.metadata import version


def test_the_command_runs_as_a_module() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "omni_neuron.cli", "--version"], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout) == (0, f"omni-neuron {version('omni-neuron')}\n")
