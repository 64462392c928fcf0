"""`nki.typing`: annotations of kernel signatures."""

from typing import Any


class tensor:  # noqa: N801 - NKI's name
    """`nt.tensor[shape]`; says nothing at run time."""

    def __class_getitem__(cls, shape: Any) -> type["tensor"]:
        return cls


class mutable_tensor(tensor):  # noqa: N801
    """A tensor that the kernel writes into."""
