"""Text of files that a user names, which may be pipes and devices."""

from __future__ import annotations

import errno
from pathlib import Path


def regular_text(path: Path) -> str:
    """The text of a file in UTF-8.

    Raises:
        OSError: it cannot be read, or it is a pipe or a device, from which reading may never end.
        UnicodeDecodeError: it is not text.
    """
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return path.read_text(encoding="utf-8")
