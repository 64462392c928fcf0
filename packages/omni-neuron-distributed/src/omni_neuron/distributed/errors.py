"""The errors of this package, each one sentence that names field, value, rule and remedy."""

from __future__ import annotations

from collections.abc import Sequence

from omni_neuron.runtime.errors import InputError


class LayoutError(InputError):
    """A parallel layout or group that cannot exist: sizes, world size, membership."""


class ShardingError(InputError):
    """A model dimension that cannot be cut as the layout asks."""


class CheckpointError(InputError):
    """A checkpoint that cannot be read, or that does not fit its model.

    ``missing``, ``extra`` and ``misfit`` are the complete lists behind the message; all are empty when a
    file could not be read.
    """

    def __init__(
        self,
        message: str,
        *,
        missing: Sequence[str] = (),
        extra: Sequence[str] = (),
        misfit: Sequence[str] = (),
    ) -> None:
        super().__init__(message)
        self.missing = tuple(missing)
        self.extra = tuple(extra)
        self.misfit = tuple(misfit)


def divisors(value: int) -> list[int]:
    """All positive divisors of ``value`` in ascending order."""
    return [candidate for candidate in range(1, value + 1) if value % candidate == 0]


def shard_size(field: str, value: int, parts: int, *, degree: str = "tp") -> int:
    """Size of one of ``parts`` equal shards of ``value``.

    ``field`` names the dimension (``"num_attention_heads"``) and ``degree`` the parallel degree
    (``"tp"``) in the message of the :class:`ShardingError` raised when ``parts`` does not divide it.
    """
    if value < 1:
        raise ShardingError(f"{field}={value} must be at least 1.")
    if value % parts:
        choices = ", ".join(str(d) for d in divisors(value) if d <= 64)
        raise ShardingError(
            f"{field}={value} must be divisible by {degree}={parts}: choose {degree} from {choices}."
        )
    return value // parts
