"""Tokens with hidden on partitions: loaded in pieces of rows, transposed on the tensor engine."""

from typing import Any

from omni_neuron.kernels.limits import PARTITIONS, ceil_div
from omni_neuron.kernels.nki import nisa, nl
from omni_neuron.kernels.qkv.plan import PIECES
from omni_neuron.kernels.qkv.setting import token_tiles


def transpose_step(setting: Any, block: int, step: int) -> None:
    """One tile of hidden of all tokens of a block, into the place of the block before."""
    within = step % setting.piece_steps
    number = block * pieces_of_block(setting) + step // setting.piece_steps
    if within == 0:
        load_pieces(setting, number + PIECES)
    tokens = setting.blocks[block][1]
    loaded = setting.pieces[number % PIECES]
    turned = nl.ndarray((PARTITIONS, tokens), setting.x.dtype, buffer=nl.psum)
    for start, rows in token_tiles(tokens):
        part = loaded[0:rows, start // PARTITIONS, nl.ds(within * PARTITIONS, PARTITIONS)]
        nisa.nc_transpose(turned[:, nl.ds(start, rows)], part, engine=nisa.engine.tensor)
    nisa.activation(setting.transposed[step][:, 0:tokens], nl.copy, turned)


def pieces_of_block(setting: Any) -> int:
    steps: int = setting.steps
    each: int = setting.piece_steps
    return ceil_div(steps, each)


def load_pieces(setting: Any, wanted: int) -> None:
    """Start the loads of all pieces before the one numbered `wanted` that have not been started."""
    each = pieces_of_block(setting)
    for number in range(setting.pieces_loaded, min(wanted, each * len(setting.blocks))):
        first, tokens = setting.blocks[number // each]
        column = number % each * setting.piece_steps * PARTITIONS
        columns = min(setting.piece_steps * PARTITIONS, setting.steps * PARTITIONS - column)
        place = setting.pieces[number % PIECES]
        for start, rows in token_tiles(tokens):
            source = setting.x[nl.ds(first + start, rows), nl.ds(column, columns)]
            nisa.dma_copy(place[0:rows, start // PARTITIONS, 0:columns], source)
        setting.pieces_loaded = number + 1
