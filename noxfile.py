"""What a person can do here.

    nox                         what every change needs: lint, types, fast tests, the engine in three layouts
    nox -s "tests(kernels)"     one session
    nox -s "tests(cli)" -- -x   what stands after -- goes to pytest

The default sessions share the environment that nox runs in; those that need another build it with uv.
"""

import sys
from pathlib import Path
from subprocess import DEVNULL

import nox

nox.needs_version = ">=2026.4"
nox.options.default_venv_backend = "none"

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
FAST = "not engine and not layouts and not slow"
TEST_ENV = {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1"}
TEST_TOOLS = ("pytest>=9,<10", "pytest-timeout>=2.4,<3", "hypothesis>=6.150,<7")


def run(session: nox.Session, minutes: int, *command: str | Path, **options) -> None:
    """Run a command for so many minutes at the most: a guard against a hang, not a target."""
    limit = ("timeout", "--kill-after=20", f"{minutes}m")
    session.run(*limit, *map(str, command), external=True, **options)


def python(session: nox.Session, minutes: int, *arguments: str | Path, **options) -> None:
    """Run a module or a file in the environment that nox runs in."""
    run(session, minutes, sys.executable, *arguments, **options)


def pytest(session: nox.Session, minutes: int, *arguments: str, by: str | Path = sys.executable) -> None:
    """Run tests; pytest ends by itself, between two of them, before the time limit cuts it off."""
    limits = (f"--session-timeout={minutes * 60}", "--timeout=120")
    run(session, minutes + 6, by, "-m", "pytest", *limits, *arguments, *session.posargs, env=TEST_ENV)


def environment(session: nox.Session, *install: str, vllm: str = "0.30.0") -> Path:
    """An empty environment with what `uv pip install` is told to put there, our own wheels from dist/.

    vLLM is built from its source distribution, as pure Python: the light way. Returns the interpreter.
    """
    folder = ROOT / ".nox" / session.name.partition("(")[0]
    python(session, 2, "-m", "uv", "venv", "--quiet", "--clear", "--python", sys.executable, folder)
    light = {"VLLM_TARGET_DEVICE": "empty", "VLLM_VERSION_OVERRIDE": vllm}
    place = ("--quiet", "--no-config", "--compile-bytecode", "--python", folder, "--find-links", "dist")
    # Our version stays the same from build to build, and uv would take an older build from its cache.
    anew = [
        f"--refresh-package={wheel.name.split('-')[0]}" for wheel in (ROOT / "dist").glob("omni_neuron*.whl")
    ]
    rest = (*anew, "--no-binary", "vllm", *install)
    python(session, 20, "-m", "uv", "pip", "install", *place, *rest, env=light)
    return folder / "bin" / "python"


def build_wheels(session: nox.Session) -> None:
    """Every package as a wheel in an emptied dist/."""
    for old in (ROOT / "dist").glob("omni_neuron*"):
        old.unlink()
    python(session, 5, "-m", "uv", "build", "--quiet", "--all-packages", "--wheel", "--out-dir", "dist")


@nox.session
def lint(session: nox.Session) -> None:
    """Ruff's rules and format, and which package may import which."""
    python(session, 1, "-m", "ruff", "check", ".")
    python(session, 1, "-m", "ruff", "format", "--check", ".")
    run(session, 1, Path(sys.executable).with_name("lint-imports"), "--no-logo")


@nox.session
def typecheck(session: nox.Session) -> None:
    """mypy --strict over every package."""
    python(session, 5, "-m", "mypy", *sorted(ROOT.glob("packages/*/src")))


@nox.session
@nox.parametrize("package", [nox.param(name, id=name) for name in FOLDERS])
def tests(session: nox.Session, package: str) -> None:
    """The fast tests of one package, or of the workspace itself."""
    pytest(session, 15, FOLDERS[package], "-m", FAST)


@nox.session
def e2e(session: nox.Session) -> None:
    """The real engine: one rank; tp2; tp2 x cp2 x cfg2."""
    pytest(session, 10, FOLDERS["platform"], FOLDERS["wan22"], "-m", "engine and not slow", "--timeout=300")


@nox.session(default=False)
def layouts(session: nox.Session) -> None:
    """Every layout in fp32 and bf16 beside the reference pipeline, as a table; up to an hour."""
    pytest(session, 60, FOLDERS["wan22"], "-m", "layouts", "--timeout=1800", "-s")


@nox.session(default=False)
def faults(session: nox.Session) -> None:
    """What bad input gets, and what a dead worker, an interrupt or a second command does; ten minutes."""
    pytest(session, 40, f"{FOLDERS['wan22']}/tests/faults", "-m", "slow", "--timeout=600")


@nox.session(default=False)
def proofs(session: nox.Session) -> None:
    """Everything about the kernels and their interpreter, the long proofs too; ten minutes."""
    pytest(session, 30, FOLDERS["kernels"], FOLDERS["sim"], "--timeout=600")


@nox.session(default=False)
def wheels(session: nox.Session) -> None:
    """Build every wheel, install and use each alone, then generate with omni-neuron[wan22]."""
    build_wheels(session)
    for package in (Path(folder).name for name, folder in FOLDERS.items() if name != "workspace"):
        interpreter = environment(session, "--constraints", "constraints.txt", package)
        run(session, 3, interpreter, "-I", "scripts/wheel_smoke.py", package)
    interpreter = environment(session, "--constraints", "constraints.txt", "omni-neuron[wan22]")
    command = interpreter.with_name("omni-neuron")
    run(session, 3, command, "doctor")
    video = Path(session.create_tmp()) / "ball.mp4"
    small = ("--steps", "2", "--output", video)
    run(session, 5, command, "generate", "a red ball rolling over grass", *small, env=TEST_ENV)


@nox.session(default=False)
def minimums(session: nox.Session) -> None:
    """The lowest versions that the packages allow, and the engine on vllm 0.29.0 with vllm-omni 0.29.0rc1."""
    build_wheels(session)
    uv = nox.project.load_toml("pyproject.toml")["tool"]["uv"]
    lowest = ("--no-sources", "--resolution", "lowest-direct", "--exclude-newer", uv["exclude-newer"])
    version = nox.project.load_toml("packages/omni-neuron/pyproject.toml")["project"]["version"]
    below = ("runtime", "distributed", "kernels", "cli")
    for tested, beside, engine in (
        (("sim", *below), (), ()),
        (("platform", "wan22"), below, ("vllm==0.29.0", "vllm-omni==0.29.0rc1")),
    ):
        folders = [FOLDERS[name] for name in (*tested, *beside)]
        # Only what is named is lowered, so the dependencies of every package are named one by one.
        direct = [f"--requirements={folder}/pyproject.toml" for folder in folders]
        ours = [f"{Path(folder).name}=={version}" for folder in folders]
        interpreter = environment(session, *lowest, *direct, *ours, *engine, *TEST_TOOLS, vllm="0.29.0")
        marks = ("-m", "not layouts and not slow", "--timeout=300")
        pytest(session, 30, *(FOLDERS[name] for name in tested), *marks, by=interpreter)


@nox.session(name="tests-3.13", default=False)
def tests_3_13(session: nox.Session) -> None:
    """The fast tests on Python 3.13, of the packages that Neuron hosts run."""
    # A pyenv shim on the PATH answers for versions that are not selected, so its folder is asked first.
    own = sorted(Path.home().glob(".pyenv/versions/3.13.*/bin/python3.13"))
    request = str(own[-1]) if own else "3.13"
    find = (sys.executable, "-m", "uv", "python", "find", "--no-project", "--no-python-downloads", request)
    found = session.run(*find, external=True, silent=True, stderr=DEVNULL, success_codes=[0, 1, 2]).strip()
    if not found:
        session.error("There is no Python 3.13 here: install it, for example with uv python install 3.13")
    folder = ROOT / ".nox" / "tests-3.13"
    python(
        *(session, 20, "-m", "uv", "sync", "--quiet", "--python", found, "--no-python-downloads"),
        env={"UV_PROJECT_ENVIRONMENT": str(folder)},
    )
    folders = [FOLDERS[name] for name in ("runtime", "distributed", "kernels", "platform", "wan22", "cli")]
    pytest(session, 20, *folders, "-m", FAST, by=folder / "bin" / "python")


@nox.session(default=False)
def bench(session: nox.Session) -> None:
    """The benchmarks that print the numbers of the documentation."""
    for file in sorted(ROOT.glob("packages/*/benchmarks/*.py")):
        python(session, 20, file, *session.posargs)


@nox.session(default=False)
def docs(session: nox.Session) -> None:
    """Write the generated pages anew, then run the examples and follow the links of every page."""
    python(session, 2, "scripts/environment_page.py")
    python(session, 2, "-m", "omni_neuron.platform.stage_config.reference", "docs/stage-configuration.md")
    python(session, 2, "-m", "omni_neuron.kernels.reference", "docs/kernels.md")
    pytest(session, 5, "tests/test_documents.py", "tests/test_environment_page.py")


@nox.session(default=False)
def constraints(session: nox.Session) -> None:
    """Write constraints.txt anew from the resolution."""
    python(session, 5, "scripts/constraints_file.py")


@nox.session(default=False)
def hw_tests(session: nox.Session) -> None:
    """The tests marked for hardware, on the Neuron devices of this host."""
    from omni_neuron.runtime.devices import DEVICE_FOLDER, chip_count

    if not chip_count():
        session.error(f"There is no Neuron device in {DEVICE_FOLDER}: run this on a trn2 or trn3 host")
    pytest(session, 60, *FOLDERS.values(), "-m", "hardware", "--timeout=1800")
