"""What all phases of the kernel share: the blocks of tokens, and the tiles that stay allocated."""

from dataclasses import dataclass
from typing import Any

from omni_neuron.kernels.limits import BANK_COLUMNS, PARTITIONS, ceil_div
from omni_neuron.kernels.nki import nisa, nl
from omni_neuron.kernels.qkv.plan import (
    GROUP,
    PIECE_BYTES,
    PIECES,
    PROJECTION_BANKS,
    block_tokens,
    even,
    groups,
)
from omni_neuron.kernels.qkv.weights import Stream, make_stream
from omni_neuron.kernels.tiles import cores, itemsize, tiles_of


@dataclass
class Setting(nl.NKIObject):
    """One core's part of the launch.

    blocks: (first token, tokens) of this core; together: (tokens of all cores, where this core's start) of
    each block, for what the cores of a rank give to one collective. steps: tiles of 128 of hidden.
    """

    x: Any
    blocks: list[Any]
    together: list[Any]
    steps: int
    eps: float
    replica_groups: Any
    ranks: int
    stream: Stream
    transposed: list[Any]  # one tile [128, block] for each tile of hidden
    pieces: list[Any]  # [128, tiles of tokens, columns] of x, as they are loaded
    piece_steps: int
    pieces_loaded: int
    psum: list[Any]
    psum_turn: int
    unscaled: list[Any]  # [128, block] fp32: q and k before the norm's factor
    unscaled_turn: int
    ones: Any


def make_setting(x: Any, weight: Any, widths: tuple[int, int, int], eps: float, replica_groups: Any) -> Any:
    """The `Setting` of this core for x `[T, hidden]`, with its tiles allocated and no load started.

    `widths` are the columns of q, k and v; `eps` and `replica_groups` as in `qkv_kernel`.
    """
    tokens, hidden = x.shape
    each = itemsize(x.dtype)
    core, of = cores()
    halves = even(tokens, of)
    most = block_tokens(hidden, widths, each)
    assert most > 0, "the projection does not fit: ask fits_qkv first"
    count = len(groups(max([size for _, size in halves]), most))
    cut = []
    for _, size in halves:
        cut.append(even(size, count))
    blocks = [(halves[core][0] + start, size) for start, size in cut[core]]
    together = []
    for b in range(count):
        sizes = [cut[c][b][1] for c in range(of)]
        together.append((sizes[0] + (sizes[1] if of > 1 else 0), sizes[0] if core == 1 else 0))
    longest = max([size for _, size in blocks])
    token_tiles = ceil_div(longest, PARTITIONS)
    piece_steps = PIECE_BYTES // (PARTITIONS * each)
    tiles = ceil_div(max(widths[0], widths[1]), PARTITIONS)
    steps = hidden // PARTITIONS
    ones = nl.ndarray((PARTITIONS, PARTITIONS), nl.float32)
    nisa.memset(ones, 1.0)
    banks = []
    for _ in range(PROJECTION_BANKS):
        banks.append(nl.ndarray((PARTITIONS, BANK_COLUMNS), nl.float32, buffer=nl.psum))
    return Setting(
        x,
        blocks,
        together,
        steps,
        eps,
        replica_groups,
        1 if replica_groups is None else len(replica_groups[0]),
        make_stream(weight, x.dtype),
        tiles_of(steps, (PARTITIONS, longest), x.dtype),
        tiles_of(PIECES, (PARTITIONS, token_tiles, piece_steps * PARTITIONS), x.dtype),
        piece_steps,
        0,
        banks,
        0,
        tiles_of(tiles + GROUP if tiles > 0 else 0, (PARTITIONS, longest), nl.float32),
        0,
        ones,
    )


def next_bank(setting: Any) -> Any:
    """PSUM banks in turn: the next is the one that was emptied longest ago."""
    setting.psum_turn += 1
    return setting.psum[(setting.psum_turn - 1) % PROJECTION_BANKS]


def token_tiles(tokens: int) -> list[Any]:
    """(start, rows) of the tiles of at most 128 tokens in a block."""
    return [(t, min(PARTITIONS, tokens - t)) for t in range(0, tokens, PARTITIONS)]


def columns_of(setting: Any, vector: Any, first: int, width: int) -> Any:
    """Elements of an HBM vector as fp32 `[128, tiles]`: element 128 j + p at partition p of column j."""
    if vector is None:
        return None
    whole, rest = width // PARTITIONS, width % PARTITIONS
    columns = nl.ndarray((PARTITIONS, whole + (1 if rest > 0 else 0)), nl.float32)
    for start, size, rows in ((0, PARTITIONS, whole), (whole, rest, 1)):
        if size > 0 and rows > 0:
            loaded = nl.ndarray((rows, size), nl.float32)
            offset = first + start * PARTITIONS
            nisa.dma_copy(loaded, vector.ap([[size, rows], [1, size]], offset=offset))
            turned = nl.ndarray((size, rows), nl.float32, buffer=nl.psum)
            nisa.nc_transpose(turned, loaded, engine=nisa.engine.tensor)
            nisa.tensor_copy(columns[0:size, nl.ds(start, rows)], turned)
    return columns
