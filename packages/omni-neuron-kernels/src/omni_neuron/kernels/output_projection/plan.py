"""How the output projection divides SBUF and PSUM: whether its weight stays, and how many tokens do."""

from omni_neuron.kernels.limits import BANK_COLUMNS, BANKS, PARTITIONS, SBUF_BYTES, ceil_div
from omni_neuron.kernels.streamed_product.plan import (
    RESULT_BYTES,
    RING_BYTES,
    SPARE_BYTES,
    banks_across,
    blocks,
)

RESIDENT_TILES = 4  # tokens of a pass where the weight stays: two stretches of columns, long runs


def tiles_per_pass(inner: int, width: int, itemsize: int) -> int:
    """Tiles of 128 tokens whose inputs stay in SBUF, twice, while weights stream; 0 where none fits.

    `inner` is the contraction, `width` the columns of the result (its bias is on all partitions).
    """
    room = max(0, SBUF_BYTES - RING_BYTES - RESULT_BYTES - SPARE_BYTES - width * itemsize)
    return min(BANKS, room // (2 * blocks(inner) * PARTITIONS * itemsize))


def fits_whole(inner: int, width: int, tiles: int, itemsize: int) -> bool:
    """Whether the weight `[inner, width]` stays in SBUF beside the inputs of two passes."""
    step = BANK_COLUMNS * banks_across(tiles, itemsize)
    weight = blocks(inner) * ceil_div(width, step) * step
    inputs = 2 * blocks(inner) * tiles * PARTITIONS
    room = SBUF_BYTES - RESULT_BYTES - SPARE_BYTES - width * itemsize
    return (weight + inputs) * itemsize <= room
