"""Convolution that looks only backwards in time, and the frames it remembers between chunks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional

HISTORY_FRAMES = 2
"""Input frames a convolution keeps for the next chunk: temporal kernel size 3, minus one."""

FirstChunk: TypeAlias = bool | Tensor
"""Whether a chunk holds the first latent frame.

A Python bool gives a first chunk its natural length: one latent frame becomes one frame.
A 0-dim bool tensor keeps the shape of later chunks, so that one compiled graph serves both: a first
chunk then carries *surplus* frames in front of its real last frame. They are held at exact zero, which
is the history that a causal convolution of a first chunk has to see, and the caller drops them.
"""


class FeatureCache:
    """The input histories of all causal convolutions, read and replaced in their order of use.

    Every slot is ``[B, C, 2, H, W]``, zeros before the first chunk. A list handed in is updated in
    place, which frees each old history as soon as its successor exists; a tuple is left as it is.
    """

    def __init__(self, slots: Sequence[Tensor]) -> None:
        self.slots = slots if isinstance(slots, list) else list(slots)
        self._next = 0

    def extend(self, x: Tensor, forget: FirstChunk = False) -> Tensor:
        """Put the stored history ``[B, C, 2, H, W]`` in front of ``x`` and remember the end of both.

        With a ``forget`` tensor that is true, zeros are remembered instead.
        ``[B, C, T, H, W]`` -> ``[B, C, 2 + T, H, W]``.
        """
        extended = torch.cat([self.slots[self._next], x], dim=2)
        history = extended[:, :, -HISTORY_FRAMES:].clone()
        if isinstance(forget, Tensor):
            history = history * forget.logical_not()
        self.slots[self._next] = history
        self._next += 1
        return extended

    def skip(self) -> None:
        """Leave the current slot as it is and go on to the next one."""
        self._next += 1


class CausalConv3d(nn.Conv3d):
    """3-D convolution with ``same`` padding in space and past-only context in time.

    Source: Wan (arXiv 2503.20314) section 4.1, chunk-wise causal VAE.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: tuple[int, int, int],
        *,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ) -> None:
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            padding=(0, kernel_size[1] // 2, kernel_size[2] // 2),
            dtype=dtype,
            device=device,
        )

    def forward(self, x: Tensor, cache: FeatureCache | None = None, forget: FirstChunk = False) -> Tensor:
        """``[B, C, T, H, W]`` -> ``[B, C', T, H, W]``.

        A temporal kernel of 3 needs the cache; ``forget`` as in `FeatureCache.extend`.
        """
        return super().forward(x if cache is None else cache.extend(x, forget))


def silence_surplus(x: Tensor, first_chunk: FirstChunk) -> Tensor:
    """Set the surplus frames of a first chunk of static shape back to zero; other chunks pass.

    Needed behind every operation that maps zero to something else, above all behind a bias.
    """
    surplus = x.shape[2] - 1
    if isinstance(first_chunk, bool) or surplus == 0:
        return x
    later = first_chunk.logical_not().to(x.dtype)
    keep = functional.pad(later.expand(surplus), (0, 1), value=1.0)
    return x * keep.view(1, 1, -1, 1, 1)
