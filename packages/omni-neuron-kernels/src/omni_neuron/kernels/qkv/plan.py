"""How the work is cut: blocks of tokens, and groups of output columns that are in PSUM at once.

Plain numbers, for the kernel while it is traced and for the shape gate.
"""

from omni_neuron.kernels.limits import PARTITIONS, SBUF_BYTES, ceil_div

PROJECTION_BANKS = 6  # of the 8; one takes transposes, one sums and tables
GROUP = 5  # tiles of 128 columns of q or k at once: one bank stays free for the next group's first
WEIGHT_BYTES = 1280  # of a partition and a tile of hidden: five tiles of columns in bf16
WEIGHT_ROWS = 4  # tiles of hidden in one load of weights
WEIGHT_LOADS = 8
PIECE_BYTES = 2048  # of a token in one load of x
PIECES = 3


def even(total: int, parts: int) -> list[tuple[int, int]]:
    """(start, size) of `parts` pieces whose sizes differ by at most one, a larger one first."""
    bounds = []
    for i in range(parts + 1):
        bounds.append(ceil_div(total * i, parts))
    return [(bounds[i], bounds[i + 1] - bounds[i]) for i in range(parts)]


def groups(count: int, most: int) -> list[tuple[int, int]]:
    """(start, size) of as few groups as hold at most `most` each, of nearly equal sizes."""
    return even(count, ceil_div(count, most))


def block_tokens(hidden: int, widths: tuple[int, int, int], itemsize: int) -> int:
    """Tokens that are worked on together: as many as fit in SBUF, at most the columns of a bank; 0 for none.

    `widths` are those of q, k and v.
    """
    for tokens in (512, 384, 256, 128):
        if resident_bytes(tokens, hidden, widths, itemsize) <= SBUF_BYTES:
            return tokens
    return 0


def resident_bytes(tokens: int, hidden: int, widths: tuple[int, int, int], itemsize: int) -> int:
    """Bytes of a partition that a block of so many tokens takes."""
    tiles = ceil_div(max(widths[0], widths[1]), PARTITIONS)
    transposed = hidden // PARTITIONS * tokens * itemsize
    loads = WEIGHT_LOADS * WEIGHT_ROWS * GROUP * PARTITIONS * itemsize
    pieces = PIECES * ceil_div(tokens, PARTITIONS) * PIECE_BYTES
    unscaled = (tiles + GROUP) * tokens * 4 if tiles else 0
    tables = 24 * tokens * 4  # cos and sin, sums of squares, inverses, and what a tile passes through
    biases = widths[2] * itemsize + 8 * tiles * 4
    return transposed + loads + pieces + unscaled + tables + biases
