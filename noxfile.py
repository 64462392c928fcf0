"""What a person can do here.

    nox                         what every change needs: lint, types, fast tests, the engine in three layouts
    nox -s "tests(kernels)"     one session
    nox -s wheels -- sim        arguments after -- go to the session

The default sessions share the one environment of the workspace; those that need another build it with uv.
"""

import sys
from pathlib import Path

import nox

nox.needs_version = ">=2026.4"
nox.options.default_venv_backend = "none"
nox.options.error_on_missing_interpreters = True

ROOT = Path(__file__).parent
FOLDERS = {
    "runtime": "packages/omni-neuron-runtime",
    "distributed": "packages/omni-neuron-distributed",
    "kernels": "packages/omni-neuron-kernels",
    "sim": "packages/omni-neuron-sim",
    "platform": "packages/omni-neuron-platform",
    "wan22": "packages/omni-neuron-wan22",
    "cli": "packages/omni-neuron",
    "workspace": "tests",
}
MINUTES = {"distributed": 2, "kernels": 2, "sim": 2, "wan22": 4}
TEST_ENV = {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1"}
FAST = "not engine and not layouts and not slow"


def run(session: nox.Session, minutes: float, *command: str | Path, **options) -> None:
    """Run a command of the environment that nox was started from, for so many minutes at the most."""
    limit = ("timeout", "--kill-after=20", f"{minutes}m")
    session.run(*limit, *map(str, command), external=True, **options)


def python(session: nox.Session, minutes: float, *arguments: str | Path, **options) -> None:
    run(session, minutes, sys.executable, *arguments, **options)


def pytest(session: nox.Session, minutes: float, *arguments: str | Path, **options) -> None:
    """Run tests; pytest ends by itself before the time limit cuts it off."""
    limit = f"--session-timeout={minutes * 60 - 10}"
    python(session, minutes, "-m", "pytest", limit, *arguments, *session.posargs, env=TEST_ENV, **options)


@nox.session
def lint(session: nox.Session) -> None:
    """Ruff's rules and format, and which package may import which."""
    python(session, 1, "-m", "ruff", "check", ".")
    python(session, 1, "-m", "ruff", "format", "--check", ".")
    run(session, 1, Path(sys.executable).with_name("lint-imports"), "--no-logo")


@nox.session
def typecheck(session: nox.Session) -> None:
    """mypy --strict over every package."""
    python(session, 2, "-m", "mypy", *sorted(ROOT.glob("packages/*/src")))


@nox.session
@nox.parametrize("package", [nox.param(name, id=name) for name in FOLDERS])
def tests(session: nox.Session, package: str) -> None:
    """The fast tests of one package, or of the workspace itself."""
    pytest(session, MINUTES.get(package, 3), FOLDERS[package], "-m", FAST, "--timeout=120")


@nox.session
def e2e(session: nox.Session) -> None:
    """The real engine: one rank; tp2; tp2 x cp2 x cfg2."""
    pytest(session, 5, FOLDERS["platform"], FOLDERS["wan22"], "-m", "engine and not slow")


@nox.session(default=False)
def layouts(session: nox.Session) -> None:
    """Every layout in fp32 and bf16 beside the reference pipeline, as a table (up to an hour)."""
    pytest(session, 60, FOLDERS["wan22"], "-m", "layouts", "--timeout=1800", "-s")


@nox.session(default=False)
def hw_tests(session: nox.Session) -> None:
    """The tests marked for hardware, on the Neuron devices of this host."""
    from omni_neuron.runtime.devices import DEVICE_FOLDER, device_count

    if not device_count():
        session.error(
            f"There is no Neuron device in {DEVICE_FOLDER}: run this session on a trn2 or trn3 host."
        )
    pytest(session, 60, *FOLDERS.values(), "-m", "hardware", "--timeout=1800")
