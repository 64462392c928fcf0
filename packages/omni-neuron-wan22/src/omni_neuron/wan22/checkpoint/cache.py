"""A folder that is made once, whoever asks first, and that nobody ever sees half made."""

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from filelock import FileLock, Timeout
from platformdirs import user_cache_path

from omni_neuron.runtime.errors import SetupError
from omni_neuron.wan22 import envs
from omni_neuron.wan22.user_path import expanded

LOCK_TIMEOUT_S = 300.0


def cache_root() -> Path:
    """``OMNI_NEURON_CACHE``, else the user's cache folder."""
    chosen = envs.cache()
    return expanded(envs.cache.name, chosen) if chosen else user_cache_path("omni-neuron")


def build_once(folder: Path, build: Callable[[Path], None], timeout_s: float = LOCK_TIMEOUT_S) -> Path:
    """Return ``folder``, after ``build`` filled it if it was not there.

    ``build`` gets an empty folder beside it, which is renamed when complete; a failed build leaves nothing.

    Raises:
        SetupError: the folder cannot be written, or another process holds the lock for too long.
    """
    if folder.is_dir():
        return folder
    lock = folder.with_name(f".{folder.name}.lock")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(lock, timeout=timeout_s):
            if not folder.is_dir():
                _build(folder, build)
    except Timeout:
        raise SetupError(
            f"another process has been building {folder} for {timeout_s:.0f} s; "
            f"wait for it, or end it and remove {lock}."
        ) from None
    except OSError as error:
        raise SetupError(
            f"{folder} cannot be written ({error.strerror or error}); "
            f"set {envs.cache.name} to a folder that can."
        ) from error
    return folder


def _build(folder: Path, build: Callable[[Path], None]) -> None:
    workshop = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        build(workshop)
        workshop.chmod(0o755)
        workshop.rename(folder)
    except BaseException:
        shutil.rmtree(workshop, ignore_errors=True)
        raise
