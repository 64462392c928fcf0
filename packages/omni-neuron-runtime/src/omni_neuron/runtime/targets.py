"""Compile targets and the memory that a logical core of each owns."""

from typing import Literal, get_args

Family = Literal["trn1n", "trn1", "trn2", "trn3", "inf2"]

GIB = 1 << 30
# Per logical core, with two physical cores to a logical one on trn2 and trn3: the table of Lite.
HBM_GIB: dict[Family, int] = {"trn1": 16, "trn1n": 16, "trn2": 24, "trn3": 36, "inf2": 16}
DEFAULT_HBM_GIB = 24


def family(target: str) -> Family | None:
    """The family of a target that may carry a suffix (`trn3-rev2`, `trn3pre`); None for an unknown one."""
    candidates: tuple[Family, ...] = get_args(Family)
    matches = [name for name in candidates if target.startswith(name)]
    return max(matches, key=len, default=None)


def hbm_bytes(target: str) -> int:
    """Device memory of one logical core in bytes; 24 GiB where the target is unknown."""
    known = family(target)
    return (DEFAULT_HBM_GIB if known is None else HBM_GIB[known]) * GIB
