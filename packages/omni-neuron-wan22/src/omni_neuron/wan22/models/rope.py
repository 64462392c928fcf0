"""Rotary position embedding over time, height and width (Su et al. 2021, applied per axis as in Wan).

A head's D/2 pairs are shared out over the three axes; pair ``i`` of an axis with ``n`` entries turns by
``position * theta ** (-2i / n)``. Neighbouring entries form a pair.
"""

from __future__ import annotations

from functools import lru_cache

import torch

from omni_neuron.distributed.context_parallel import split_sequence
from omni_neuron.distributed.groups import ParallelGroup
from omni_neuron.runtime.errors import InputError

Grid = tuple[int, int, int]
"""Tokens along time, height and width."""

THETA = 10000.0


def axis_dims(head_dim: int) -> Grid:
    """Entries of a head that turn with time, height and width: ``D - 4(D//6), 2(D//6), 2(D//6)``."""
    spatial = 2 * (head_dim // 6)
    return head_dim - 2 * spatial, spatial, spatial


def build_rotary_tables(grid: Grid, head_dim: int, max_length: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Cosine and sine of every token's angles, float32 ``[1, T*H*W, 1, D/2]``, on the host.

    The angles are formed in float64: at position 1000 a float32 product is off by 1e-4 radian.

    Raises:
        InputError: an axis is longer than ``max_length``.
    """
    angles = []
    for axis, (length, dim) in enumerate(zip(grid, axis_dims(head_dim), strict=True)):
        if length > max_length:
            name = ("time", "height", "width")[axis]
            raise InputError(
                f"{name}={length} tokens must be at most rope_max_seq_len={max_length}: "
                "ask for a smaller or shorter video."
            )
        exponent = torch.arange(0, dim, 2, dtype=torch.float64, device="cpu") / dim
        position = torch.arange(length, dtype=torch.float64, device="cpu")
        shape = [1, 1, 1, dim // 2]
        shape[axis] = length
        angle = torch.outer(position, 1.0 / THETA**exponent).view(shape)
        angles.append(angle.expand(*grid, dim // 2))
    angle = torch.cat(angles, dim=-1).reshape(1, -1, 1, head_dim // 2)
    return angle.cos().float(), angle.sin().float()


class RotaryTables:
    """This rank's share of the tables on its device, remembered for the grids seen last.

    ``tables(grid, device) -> (cos, sin)``, float32 ``[1, S/cp, 1, D/2]``; padded tokens get zeros.
    """

    def __init__(self, head_dim: int, max_length: int, group: ParallelGroup) -> None:
        self.head_dim = head_dim
        self.max_length = max_length
        self.group = group
        # Inference tensors would tie later callers to inference mode.
        self._remembered = lru_cache(maxsize=4)(torch.inference_mode(mode=False)(self._build))

    def __call__(self, grid: Grid, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
        # A trace must not read what changes between calls, or the second call would recompile.
        build = self._build if torch.compiler.is_compiling() else self._remembered
        return build(grid, device)

    def _build(self, grid: Grid, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
        cos, sin = build_rotary_tables(grid, self.head_dim, self.max_length)
        return split_sequence(cos, self.group, 1).to(device), split_sequence(sin, self.group, 1).to(device)


def rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Turn the pairs of ``x`` float32 ``[B, S, H, D]`` by tables ``[B or 1, S, 1, D/2]``."""
    pairs = x.view(*x.shape[:-1], -1, 2)
    if x.device.type == "cpu" and not torch.compiler.is_compiling():
        # One pass over the memory; accelerators have no complex numbers.
        turned = torch.view_as_complex(pairs) * torch.complex(cos, sin)
        return torch.view_as_real(turned).flatten(-2)
    even, odd = pairs.unbind(-1)
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1).flatten(-2)
