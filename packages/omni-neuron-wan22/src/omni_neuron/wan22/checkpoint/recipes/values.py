"""Random tensors that no initialisation would give.

Each value is ``center + spread * u`` with ``u`` uniform, of mean 0 and variance 1. Uniform numbers are made
of random bits alone, so that a seed gives the same bytes on every machine. Norm weights lie around a centre
other than 1, biases and tables are as large as what they are added to: code that forgets one of them changes
the result by percents.
"""

import hashlib
import math
from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor


class Recipe(NamedTuple):
    """Shape and distribution of one tensor."""

    shape: tuple[int, ...]
    center: float
    spread: float


def weight(*shape: int, gain: float = 1.0) -> Recipe:
    """Linear ``[out, in]`` or convolution ``[out, in, ...]``; variance 1 comes out as ``gain ** 2``."""
    return Recipe(shape, 0.0, gain / math.sqrt(math.prod(shape[1:])))


def bias(*shape: int, spread: float = 0.2) -> Recipe:
    """Bias, or any table that is added."""
    return Recipe(shape, 0.0, spread)


def norm(*shape: int, center: float = 1.25) -> Recipe:
    """Weight of a norm; within 0.43 of its center."""
    return Recipe(shape, center, 0.25)


def linear(name: str, out_features: int, in_features: int, gain: float = 1.0) -> dict[str, Recipe]:
    """Weight and bias of a linear layer."""
    return {
        f"{name}.weight": weight(out_features, in_features, gain=gain),
        f"{name}.bias": bias(out_features),
    }


def convolution(name: str, *shape: int, gain: float = 1.0) -> dict[str, Recipe]:
    """Weight and bias of a convolution of shape ``[out, in, *kernel]``."""
    return {f"{name}.weight": weight(*shape, gain=gain), f"{name}.bias": bias(shape[0])}


def draw(recipes: Mapping[str, Recipe], label: str) -> dict[str, Tensor]:
    """fp32 tensors; each depends on ``label`` and its own name only, so sizes elsewhere do not move it."""
    return {name: _draw(recipe, f"{label}/{name}") for name, recipe in recipes.items()}


def _draw(recipe: Recipe, label: str) -> Tensor:
    seed = int.from_bytes(hashlib.sha256(label.encode()).digest()[:8], "big") >> 1
    uniform = torch.rand(recipe.shape, generator=torch.Generator().manual_seed(seed))
    return uniform.sub_(0.5).mul_(recipe.spread * math.sqrt(12)).add_(recipe.center)
