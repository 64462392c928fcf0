"""The little arithmetic on version strings that detection needs."""

import re

_MINOR = re.compile(r"(\d+)\.(\d+)")


def minor(version: str) -> tuple[int, int]:
    """First two numbers of a version: (2, 11) for `2.11.0.1.0.2651`, (0, 29) for `0.29.0rc1`.

    Raises ValueError for a text that does not start with two numbers.
    """
    match = _MINOR.match(version)
    if match is None:
        raise ValueError(f"The version {version!r} does not start with two numbers such as 0.29.")
    return int(match[1]), int(match[2])


def public(version: str) -> str:
    """A version without its local label: `2.13.0` for `2.13.0+cpu`."""
    return version.partition("+")[0]
