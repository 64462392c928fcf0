"""Paths as a user writes them."""

from pathlib import Path

from omni_neuron.runtime.errors import InputError


def expanded(name: str, path: str | Path) -> Path:
    """A path with `~` and `~user` replaced by a home.

    Raises:
        InputError: there is no such user, or no home; `name` says which setting the path belongs to.
    """
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise InputError(
            f"{name} is {str(path)!r}, but {Path(path).parts[0]!r} is no home that is known here; "
            "write the path out."
        ) from None
