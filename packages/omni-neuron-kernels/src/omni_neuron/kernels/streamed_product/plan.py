"""How a product with a streamed weight divides tokens, SBUF and PSUM. Plain numbers: shape gates ask too."""

from omni_neuron.kernels.limits import BANK_COLUMNS, BANKS, PARTITIONS, ceil_div

RING_BYTES = 8 * 1024  # weights on their way: at least four slots
SLOT_BYTES = 2 * 1024  # a contiguous run that DMA moves near its full rate
RESULT_BYTES = BANKS * BANK_COLUMNS * 4  # what PSUM holds, on its way out
SPARES = 2
SPARE_BYTES = SPARES * BANK_COLUMNS * 4  # sums that wait for their bias


def blocks(length: int) -> int:
    """Pieces of 128 that cover a dimension; the last one may be ragged."""
    return ceil_div(length, PARTITIONS)


def block_size(length: int, index: int) -> int:
    """Rows of one of these pieces."""
    return min(PARTITIONS, length - index * PARTITIONS)


def banks_across(units: int, itemsize: int) -> int:
    """Stretches of 512 weight columns to take at once, for `units` banks below each other."""
    return max(1, min(BANKS // units, SLOT_BYTES // (BANK_COLUMNS * itemsize)))


def passes(first: int, last: int, most: int) -> list[tuple[int, int]]:
    """(start, size) of passes over tokens `first` to `last`, each of at most `most` tiles of 128 tokens.

    Their sizes differ by one tile at most, and the first is a largest: a pass of few tokens waits for its
    weights, so none is left with the rest.
    """
    tiles = blocks(last - first)
    groups = ceil_div(tiles, most)
    starts = []
    for g in range(groups):
        starts.append(first + ceil_div(tiles * g, groups) * PARTITIONS)
    starts.append(last)
    return [(starts[g], starts[g + 1] - starts[g]) for g in range(groups)]


def ring_slots(columns: int, itemsize: int) -> int:
    """Pieces `[128, columns]` of weight that are on their way at a time."""
    return RING_BYTES // (columns * itemsize)
