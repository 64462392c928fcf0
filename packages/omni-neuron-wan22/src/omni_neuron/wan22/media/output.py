"""Files that appear whole or not at all."""

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from omni_neuron.runtime.errors import InputError
from omni_neuron.wan22.user_path import expanded


def check_writable(path: str | Path) -> Path:
    """Find out before the work whether a file can be written at ``path``; its folder must exist.

    Raises:
        InputError: one sentence with the path and the reason.
    """
    path = expanded("path", path)
    try:
        folder = path.is_dir()
    except OSError as error:
        raise _refusal(path, error) from None
    if folder:
        raise InputError(f"{path} cannot be written: it is a folder; add a file name.")
    if not path.parent.is_dir():
        raise InputError(f"{path} cannot be written: the folder {path.parent} does not exist; create it.")
    if path.exists() and not os.access(path, os.W_OK):
        raise InputError(f"{path} cannot be written: permission denied; choose another path.")
    try:
        # What the modes allow is not always what the file system does, so try.
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise _refusal(path, error) from None
    return path


@contextmanager
def whole_file(path: str | Path) -> Iterator[Path]:
    """A temporary path beside ``path``, with the same suffix, that replaces it when the block ends well.

    Raises:
        InputError: the folder cannot be written; on that and any other error the temporary file is gone.
    """
    path = check_writable(path)
    draft: Path | None = None
    try:
        handle, name = tempfile.mkstemp(prefix=".draft-", suffix=path.suffix, dir=path.parent)
        os.close(handle)
        draft = Path(name)
        yield draft
        draft.chmod(0o666 & ~_umask())
        draft.replace(path)
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EPERM, errno.ENOSPC, errno.EROFS, errno.EDQUOT):
            raise _refusal(path, error) from error
        raise
    finally:
        if draft is not None:
            draft.unlink(missing_ok=True)


def _refusal(path: Path, error: OSError) -> InputError:
    reason = (error.strerror or str(error)).lower()
    return InputError(f"{path} cannot be written: {reason}; choose another path.")


def _umask() -> int:
    # Python can only read the mask by setting it.
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
