"""Write constraints.txt: the exact versions of the workspace's resolution, for people who install with pip.

The file names no index and no host. Our own packages are left out, and so are the tools of development.
"""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / "constraints.txt"
EXPORT = (
    *("uv", "export", "--locked", "--all-packages", "--all-extras", "--no-dev"),
    *("--no-emit-workspace", "--no-hashes", "--no-annotate"),
)


def constraints() -> str:
    """The text of the file, from `uv.lock`; RuntimeError when the lock does not fit the packages any more."""
    command = [sys.executable, "-m", *EXPORT, "--quiet"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode:
        raise RuntimeError(f"uv export failed, run uv lock first: {done.stderr.strip()}")
    pins = [line for line in done.stdout.splitlines() if not line.startswith("#")]
    return "\n".join([f"# Made by nox -s constraints, from {' '.join(EXPORT)}", *pins, ""])


if __name__ == "__main__":
    TARGET.write_text(constraints(), encoding="utf-8")
