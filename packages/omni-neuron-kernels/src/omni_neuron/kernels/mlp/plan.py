"""How the MLP divides SBUF and PSUM."""

from omni_neuron.kernels.limits import BANK_COLUMNS, BANKS, PARTITIONS, SBUF_BYTES, ceil_div
from omni_neuron.kernels.streamed_product.plan import (
    RESULT_BYTES,
    RING_BYTES,
    SLOT_BYTES,
    SPARE_BYTES,
    blocks,
)

ROWS = 2  # tiles of x on their way to the transpose


def tiles_per_pass(hidden: int, inner: int, itemsize: int) -> int:
    """Tiles of 128 tokens whose x and inner activation stay in SBUF; 0 where not even one fits."""
    columns = (ROWS + 1) * hidden + blocks(inner)  # rows of x, the bias of each side
    room = max(0, SBUF_BYTES - 2 * RING_BYTES - RESULT_BYTES - SPARE_BYTES - columns * itemsize)
    return min(BANKS, room // ((blocks(hidden) + blocks(inner)) * PARTITIONS * itemsize))


def blocks_across(tokens: int, itemsize: int) -> int:
    """Blocks of 128 inner channels to take at once: what PSUM holds of them, and a slot of their weight."""
    stretches = ceil_div(tokens, BANK_COLUMNS)
    return max(1, min(BANKS // stretches, SLOT_BYTES // (PARTITIONS * itemsize)))
