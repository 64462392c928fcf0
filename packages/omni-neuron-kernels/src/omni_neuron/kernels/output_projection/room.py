"""How a product with streamed weights divides tokens, SBUF and PSUM. Plain numbers: shape gates ask too."""

PARTITIONS = 128
BANKS = 8  # of PSUM
BANK_COLUMNS = 512  # fp32 sums in one bank, and moving columns of one matmul
SBUF_BYTES = 208 * 1024  # of one partition, what a kernel may use on trn2

RESIDENT_TILES = 4  # tokens of a pass where the weight stays: two stretches of columns, long runs

RING_BYTES = 8 * 1024  # weights on their way: at least four slots
SLOT_BYTES = 2 * 1024  # a contiguous run that DMA moves near its full rate
RESULT_BYTES = BANKS * BANK_COLUMNS * 4  # what PSUM holds, on its way out
SPARE_BYTES = 2 * BANK_COLUMNS * 4  # sums that wait for their bias


def blocks(length: int) -> int:
    """Pieces of 128 that cover a dimension; the last one may be ragged."""
    return -(-length // PARTITIONS)


def block_size(length: int, index: int) -> int:
    """Rows of one of these pieces."""
    return min(PARTITIONS, length - index * PARTITIONS)


def banks_across(units: int, itemsize: int) -> int:
    """Stretches of 512 weight columns to take at once, for `units` banks below each other."""
    return max(1, min(BANKS // units, SLOT_BYTES // (BANK_COLUMNS * itemsize)))


def passes(first: int, last: int, most: int) -> list[tuple[int, int]]:
    """(start, size) of groups of at most `most` tiles of 128 tokens, equal to one tile, the first a largest.

    A pass of few tokens waits for its weights, so none is left with the rest.
    """
    tiles = blocks(last - first)
    groups = -(-tiles // most)
    starts = [first + -(-tiles * g // groups) * PARTITIONS for g in range(groups)] + [last]
    return [(starts[g], starts[g + 1] - starts[g]) for g in range(groups)]


def ring_slots(columns: int, itemsize: int) -> int:
    """Pieces `[128, columns]` of weight that are on their way at a time."""
    return RING_BYTES // (columns * itemsize)


def tiles_per_pass(inner: int, width: int, itemsize: int) -> int:
    """Tiles of 128 tokens whose inputs stay in SBUF, twice, while weights stream; 0 where none fits.

    `inner` is the contraction, `width` the columns of the result (its bias is on all partitions).
    """
    room = SBUF_BYTES - RING_BYTES - RESULT_BYTES - SPARE_BYTES - width * itemsize
    return max(0, min(BANKS, room // (2 * blocks(inner) * PARTITIONS * itemsize)))


def fits_whole(inner: int, width: int, tiles: int, itemsize: int) -> bool:
    """Whether the weight `[inner, width]` stays in SBUF beside the inputs of two passes."""
    step = BANK_COLUMNS * banks_across(tiles, itemsize)
    weight = blocks(inner) * -(-width // step) * step
    inputs = 2 * blocks(inner) * tiles * PARTITIONS
    room = SBUF_BYTES - RESULT_BYTES - SPARE_BYTES - width * itemsize
    return (weight + inputs) * itemsize <= room
