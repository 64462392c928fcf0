"""Queries and keys: dimensions of heads on partitions, tokens along the free axis."""

from dataclasses import dataclass
from typing import Any

from omni_neuron.kernels.limits import PARTITIONS, ceil_div
from omni_neuron.kernels.nki import ncc, nisa, nl
from omni_neuron.kernels.qkv.plan import GROUP
from omni_neuron.kernels.qkv.setting import next_bank
from omni_neuron.kernels.tiles import cores


@dataclass
class Rows(nl.NKIObject):
    """The columns of q or k in tiles of 128: their first, their width, and `[width, T]` where they go.

    bias and gamma are `[128, tiles]` fp32 or None, without gamma there is no norm; half is that of a head.
    """

    name: str
    column: int
    width: int
    out: Any
    bias: Any
    gamma: Any
    half: int
    squares: Any = None
    held: Any = None

    def token_major(self) -> bool:
        return False

    def pieces(self) -> int:
        return ceil_div(self.width, PARTITIONS)

    def at_once(self) -> int:
        return GROUP

    def size(self, tile: int) -> int:
        return min(PARTITIONS, self.width - tile * PARTITIONS)

    def span(self, first: int, count: int) -> tuple[int, int]:
        start = first * PARTITIONS
        return self.column + start, min(count * PARTITIONS, self.width - start)

    def banks(self, setting: Any, block: int, first: int, count: int) -> list[Any]:
        """One for each tile of columns."""
        tokens = setting.blocks[block][1]
        found = []
        for t in range(first, first + count):
            found.append(next_bank(setting)[0 : self.size(t), 0:tokens])
        return found

    def multiply(self, setting: Any, block: int, step: int, tile: Any, row: int, banks: list[Any]) -> None:
        moving = setting.transposed[step][:, 0 : setting.blocks[block][1]]
        for t in range(len(banks)):
            stationary = tile[:, row, nl.ds(t * PARTITIONS, banks[t].shape[0])]
            nisa.nc_matmul(banks[t], stationary, moving, accumulate=step > 0)


def take_rows(
    setting: Any, section: Any, block: int, first: int, count: int, banks: list[Any], tables: Any
) -> Any:
    """Add the bias to finished tiles and rotate them; store them where there is no norm.

    With a norm they wait in SBUF, and after the last tile of a section this returns what `reduce_sums` takes.
    """
    start, tokens = setting.blocks[block]
    if first == 0:
        section.squares = nl.ndarray((min(PARTITIONS, section.width), tokens), nl.float32)
        section.held = []
    tiles = []
    for t in range(first, first + count):
        size = section.size(t)
        tile = nl.ndarray((size, tokens), nl.float32)
        shift = 0.0 if section.bias is None else section.bias[0:size, t : t + 1]
        nisa.activation(tile, nl.copy, banks[t - first], bias=shift)
        tiles.append(tile)
    if section.gamma is not None:
        for t in range(count):
            add_squares(section.squares, tiles[t], first + t == 0)
    for t in range(first, first + count):
        size = section.size(t)
        if section.gamma is None:
            done = nl.ndarray((size, tokens), section.out.dtype)
            rotate(done, tiles[t - first], 1.0, tables, section.half)
            store(section, t, start, tokens, done)
        else:
            place = setting.unscaled[setting.unscaled_turn % len(setting.unscaled)][0:size, 0:tokens]
            setting.unscaled_turn += 1
            rotate(place, tiles[t - first], section.gamma[0:size, t : t + 1], tables, section.half)
            section.held.append(place)
    if section.gamma is None or first + count < section.pieces():
        return None
    return section, block, section.squares, section.held


def add_squares(total: Any, tile: Any, first: bool) -> None:
    """total `[128, tokens]` += tile^2, of a tile that may have fewer rows; the first starts the sum."""
    if first:
        nisa.activation(total, nl.square, tile)
    else:
        size = tile.shape[0]
        squares = nl.ndarray(tile.shape, nl.float32)
        nisa.activation(squares, nl.square, tile)
        nisa.tensor_tensor(total[0:size], total[0:size], squares, nl.add, engine=nisa.engine.gpsimd)


def rotate(out: Any, tile: Any, gain: Any, tables: Any, half: int) -> None:
    """tile * gain, turned by its tokens' angles: halves (a, b) become (a cos - b sin, b cos + a sin)."""
    if tables is None:
        nisa.tensor_scalar(out, tile, nl.multiply, gain)
        return
    cos, sin = tables
    size = tile.shape[0]
    straight = nl.ndarray(tile.shape, nl.float32)
    nisa.scalar_tensor_tensor(straight, tile, nl.multiply, gain, nl.multiply, cos[0:size])
    crossed = nl.ndarray(tile.shape, nl.float32)
    for segment in range(size // half):
        source = nl.ds(segment * half, half)
        target = nl.ds((segment + 1 if segment % 2 == 0 else segment - 1) * half, half)
        factor = gain if isinstance(gain, float) else gain[source]
        nisa.scalar_tensor_tensor(
            crossed[target], tile[source], nl.multiply, factor, nl.multiply, sin[source]
        )
    nisa.tensor_tensor(out, straight, crossed, nl.add, engine=nisa.engine.gpsimd)


def reduce_sums(setting: Any, sums: Any) -> Any:
    """1 / root mean square of each token over all heads of all ranks, on all partitions."""
    section, block, squares, held = sums
    tokens = setting.blocks[block][1]
    local = nl.ndarray((PARTITIONS, tokens), nl.float32, buffer=nl.psum)
    nisa.nc_matmul(local, setting.ones[0 : squares.shape[0]], squares, accumulate=False)
    total = nl.ndarray((PARTITIONS, tokens), nl.float32)
    if setting.ranks == 1:
        nisa.tensor_copy(total, local, engine=nisa.engine.vector)
    else:
        across_ranks(setting, section.name, block, local, total)
    inverse = nl.ndarray((PARTITIONS, tokens), nl.float32)
    mean = 1.0 / (section.width * setting.ranks)
    nisa.activation(inverse, nl.rsqrt, total, scale=mean, bias=setting.eps)
    return section, block, inverse, held


def across_ranks(setting: Any, name: str, block: int, local: Any, total: Any) -> None:
    """The sum over all ranks of one row of `local`, on all partitions of `total`.

    Both cores of a rank give their tokens to one collective, in HBM that they share.
    """
    tokens = setting.blocks[block][1]
    together, begin = setting.together[block]
    row = nl.ndarray((1, tokens), nl.float32)
    nisa.tensor_copy(row, local[0:1], engine=nisa.engine.vector)
    mine = nl.ndarray((1, together), nl.float32, buffer=nl.shared_hbm, name=f"squares_{name}_{block}")
    everybody = nl.ndarray((1, together), nl.float32, buffer=nl.shared_hbm, name=f"sums_{name}_{block}")
    nisa.dma_copy(mine[:, nl.ds(begin, tokens)], row)
    if cores()[1] > 1:
        nisa.core_barrier(mine, (0, 1))
    ncc.all_reduce([mine], [everybody], ncc.ReplicaGroup(setting.replica_groups), nl.add)
    nisa.dma_copy(total, everybody.ap([[0, PARTITIONS], [1, tokens]], offset=begin))


def scale_rows(setting: Any, rows: Any) -> None:
    """Multiply waiting tiles by their tokens' factors, round them and store them."""
    section, block, inverse, held = rows
    start, tokens = setting.blocks[block]
    for t in range(len(held)):
        size = section.size(t)
        done = nl.ndarray((size, tokens), section.out.dtype)
        nisa.tensor_tensor(done, held[t], inverse[0:size], nl.multiply)
        store(section, t, start, tokens, done)


def store(section: Any, tile: int, start: int, tokens: int, done: Any) -> None:
    """Finished rows `[<= 128, tokens]` of a tile of columns to their place in HBM, from token `start` on."""
    where = nl.ds(tile * PARTITIONS, section.size(tile))
    nisa.dma_copy(section.out[where, nl.ds(start, tokens)], done)
