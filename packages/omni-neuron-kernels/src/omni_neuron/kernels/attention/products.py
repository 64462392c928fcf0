"""The two products of attention, and the exponential between them.

Scores stand with keys on partitions and queries along the free axis, which is how the second product wants
the weights: nothing is transposed.
"""

from typing import Any

from omni_neuron.kernels.attention.banks import COLUMNS, in_bank
from omni_neuron.kernels.attention.key_blocks import TILE
from omni_neuron.kernels.nki import nisa, nl


def pairs(tiles: list[Any]) -> list[Any]:
    """Two full tiles at a time; what is left alone."""
    found = []
    i = 0
    while i < len(tiles):
        together = i + 1 < len(tiles) and tiles[i + 1][1].shape[0] == tiles[i][1].shape[0]
        found.append(tiles[i : i + 2] if together else tiles[i : i + 1])
        i += 2 if together else 1
    return found


def scores_of(pair: list[Any], query: Any, turn: int) -> Any:
    """q.k of a pair of tiles in PSUM, `[keys, tiles, queries]`; the turn says which half of the banks."""
    rows, count = pair[0][1].shape[0], query.shape[1]
    scores = in_bank((rows, len(pair), COLUMNS), nl.float32, 2 * (turn % 2))
    for j in range(len(pair)):
        nisa.nc_matmul(scores[:, j, 0:count], pair[j][0], query, accumulate=False)
    return scores[:, :, 0:count]


def weights_in_window(head: Any, pair: list[Any], query: Any, shift: Any, bias: Any, turn: int) -> Any:
    """exp(scale q.k - c) of a pair of tiles in the dtype of the values, `[keys, tiles, queries]`.

    `shift` `[128, 1]` is -c for all queries. `bias` `[128, tiles]` replaces it where keys are masked.
    """
    scores = scores_of(pair, query, turn)
    rows = scores.shape[0]
    weights = nl.ndarray(scores.shape, head.values.dtype)
    if bias is None:
        nisa.activation(weights, nl.exp, scores, bias=shift[0:rows], scale=head.scale)
    else:
        _exponentials(weights, scores, pair, head.mask[:, 0], bias)
    return weights


def _exponentials(weights: Any, scores: Any, pair: list[Any], factors: Any, added: Any) -> None:
    """exp(factor q.k + added), with factors and what is added `[128, tiles]` for each key."""
    rows = scores.shape[0]
    for j in range(len(pair)):
        tile = nl.ds(pair[j][2], 1)
        nisa.activation(
            weights[:, j], nl.exp, scores[:, j], bias=added[0:rows, tile], scale=factors[0:rows, tile]
        )


def weights_of_rows(head: Any, pair: list[Any], query: Any, shifts: Any) -> Any:
    """The same with a shift for each query, in three rows `[3, queries]` that the tensor engine adds up."""
    scores = scores_of(pair, query, 0)
    rows, tiles, _ = scores.shape
    ones = nl.ndarray((shifts.shape[0], rows), nl.bfloat16)
    nisa.memset(ones, 1.0, engine=nisa.engine.vector)
    for j in range(tiles):
        nisa.nc_matmul(scores[:, j], ones, shifts, accumulate=True)
    weights = nl.ndarray(scores.shape, head.values.dtype)
    if head.mask is None:
        for j in range(tiles):
            nisa.activation(weights[:, j], nl.exp, scores[:, j], scale=head.scale)
    else:
        _exponentials(weights, scores, pair, head.mask[:, 0], head.mask[:, 1])
    return weights


def add_weighted_values(sums: list[Any], pair: list[Any], weights: Any, first: bool) -> None:
    """Add weights times [values | 1] to the sums `[queries, D + 1]`, one PSUM bank for 128 queries."""
    for j in range(len(pair)):
        for i in range(len(sums)):
            part = weights[:, j, nl.ds(i * TILE, sums[i].shape[0])]
            nisa.nc_matmul(sums[i], part, pair[j][1], accumulate=not (first and j == 0))
