"""How a convolution is cut to fill the PE array and to fit SBUF: integers, for the gate and for the kernel.

The PE contracts 128 rows, so 64 or 96 channels would leave part of it idle. What remains after full tiles of
128 channels is therefore stacked: a chunk of up to 42 channels is held as 3 copies, each shifted by one
column, and a chunk of up to 14 channels as 9 copies, shifted by columns and rows. One matmul then serves 3 or
9 taps. In the same way a remainder of up to 64 output channels is computed for 2 or 4 neighbouring image rows
at once: `stack` rows need `stack + 2` row offsets of the input where they would need `3 * stack`.
"""

from omni_neuron.kernels.limits import BANK_COLUMNS, PARTITIONS, SBUF_BYTES, ceil_div

ROOM_BYTES = SBUF_BYTES - 8 * 1024  # of a partition; biases and the like take the rest
RESIDENT_BYTES = 104 * 1024  # weights of all output channels stay in SBUF up to this size
WEIGHT_SET_BYTES = 56 * 1024  # else as many at a time as fit here, twice
BLOCKS_AT_ONCE = 4  # PSUM banks that share a stationary tile; as many are evicted meanwhile
WANTED_ROWS = 8  # per step where SBUF allows, so that a halo of two rows costs little
ENOUGH_ROWS = 4
NARROWEST_BAND = 64

Chunk = tuple[int, int, int]  # first input channel, how many, copies on partitions
Span = tuple[int, int, int]  # first output channel, how many, image rows at once
Plan = tuple[list[list[Span]], int, int, int, bool, bool]


def contraction(channels: int, side: int) -> list[Chunk]:
    """Chunks of input channels for a spatial kernel of `side x side`, with the fewest matmuls."""
    chunks: list[Chunk] = []
    first = 0
    while first < channels:
        left = channels - first
        most, copies = PARTITIONS, 1
        if side == 3 and 3 * (left // 42) + min(3, ceil_div(left % 42, 14)) < 9:
            most, copies = (42, 3) if left > 28 else (14, 9)
        count = min(left, most)
        chunks.append((first, count, copies))
        first += count
    return chunks


def last_offset(copies: int, side: int, stack: int) -> int:
    """The last row offset of a chunk: all from 0 on, every third where rows are on partitions too."""
    reach = stack + side - 2
    return reach // side * side if copies > side else reach


def output_spans(channels: int, side: int, most_stacked: int) -> list[Span]:
    """Output channels that are computed in tiles of 128, and the rest that takes several rows at once."""
    rest = channels % PARTITIONS
    stack = 1
    while side == 3 and rest and 2 * stack * rest <= PARTITIONS and 2 * stack <= most_stacked:
        stack *= 2
    if stack == 1:
        return [(0, channels, 1)]
    plain = channels - rest
    return [(0, plain, 1), (plain, rest, stack)] if plain else [(0, rest, stack)]


def weight_bytes(chunks: list[Chunk], kt: int, side: int, span: Span, itemsize: int) -> int:
    """Bytes of a partition that the weights of some output channels take."""
    blocks = 0
    for _, _, copies in chunks:
        columns = side if copies == 1 else 1
        blocks += kt * columns * (last_offset(copies, side, span[2]) + span[2])
    return blocks * span[1] * itemsize


def weight_sets(
    chunks: list[Chunk], outputs: int, kt: int, side: int, most_stacked: int, itemsize: int
) -> tuple[list[list[Span]], int, bool]:
    """Output channels whose weights are in SBUF together, bytes in use, whether the next set is loaded ahead.

    The bytes are those of a partition.
    """
    spans = output_spans(outputs, side, most_stacked)
    total = 0
    for span in spans:
        total += weight_bytes(chunks, kt, side, span, itemsize)
    if total <= RESIDENT_BYTES:
        return [spans], total, False
    tile = weight_bytes(chunks, kt, side, (0, PARTITIONS, 1), itemsize)
    columns = max(WEIGHT_SET_BYTES // tile, 1) * PARTITIONS
    sets: list[list[Span]] = []
    for first, count, stack in spans:
        last = first + count
        sets += [[(start, min(columns, last - start), stack)] for start in range(first, last, columns)]
    largest = 0
    for together in sets:
        largest = max(largest, weight_bytes(chunks, kt, side, together[0], itemsize))
    ahead = len(sets) > 1 and largest <= WEIGHT_SET_BYTES
    return sets, 2 * largest if ahead else largest, ahead


def tile_rows(copies: int, side: int, stack: int, rows: int) -> int:
    """Rows of input that a chunk holds for `rows` rows of output."""
    if copies > side:
        return max(rows, rows - stack + last_offset(copies, side, stack) + 1)
    return rows + side - 1


def rows_that_fit(
    chunks: list[Chunk], kt: int, side: int, stack: int, ahead: bool, most: int, row_bytes: int, left: int
) -> int:
    """Output rows of one step, a multiple of `stack` and up to `most`, whose frames fit `left` bytes."""
    held = 2 * kt if ahead else kt
    for rows in range(max(most // stack, 1) * stack, 0, -stack):
        lines = 2 * rows
        for _, _, copies in chunks:
            lines += held * tile_rows(copies, side, stack, rows)
        if lines * row_bytes <= left:
            return rows
    return 0


def plan(inputs: int, outputs: int, kt: int, side: int, height: int, width: int, itemsize: int) -> Plan:
    """Steps that fit SBUF: whole rows if a few at a time do, else the widest band of columns that does.

    Returns:
        sets of output spans, `stack` of the last span, `rows` and columns of output per step, whether the
        next set of weights is loaded ahead, whether the next step's frames are. `rows` is 0 where nothing
        fits.
    """
    chunks = contraction(inputs, side)
    best: Plan = ([], 1, 0, width, False, False)
    for most_stacked in (4, 2, 1):
        sets, weights, weights_ahead = weight_sets(chunks, outputs, kt, side, most_stacked, itemsize)
        stack = sets[-1][-1][2]
        for bands in range(1, ceil_div(width, NARROWEST_BAND) + 1):
            wide = ceil_div(width, bands)
            wanted = max(WANTED_ROWS, BLOCKS_AT_ONCE * max(BANK_COLUMNS // wide, 1))
            most = min(wanted, height + stack - 1)
            row_bytes = (wide + side - 1) * itemsize
            for ahead in (True, False):
                rows = rows_that_fit(chunks, kt, side, stack, ahead, most, row_bytes, ROOM_BYTES - weights)
                found = (sets, stack, rows, wide, weights_ahead, ahead)
                if ahead and rows >= min(ENOUGH_ROWS, height):
                    return found
                if rows > best[2]:
                    best = found
    return best
