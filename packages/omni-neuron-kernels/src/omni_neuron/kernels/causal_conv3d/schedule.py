"""The order of the work: steps of a core, matmuls into one PSUM tile, pieces that fill a bank."""

from typing import Any

from omni_neuron.kernels.causal_conv3d.plan import last_offset
from omni_neuron.kernels.limits import BANK_COLUMNS, ceil_div
from omni_neuron.kernels.tiles import share


def own_steps(batch: int, frames: int, height: int, width: int, rows: int, wide: int, stack: int) -> Any:
    """(batch entry, frame, area) of this core's steps; an area is (top, rows, left, columns) of an image.

    The cores share the rows. Within one area a step needs one frame that the step before it did not hold.
    """
    first, last = share(ceil_div(height, stack))
    first, last = first * stack, min(last * stack, height)
    own = max(last - first, 0)
    bands = max(ceil_div(own, rows), 1)
    each = max(ceil_div(own, bands * stack), 1) * stack
    steps = []
    for b in range(batch):
        for top in range(first, last, each):
            for left in range(0, width, wide):
                area = (top, min(each, last - top), left, min(wide, width - left))
                steps += [(b, t, area) for t in range(frames)]
    return steps


def centre_first(count: int, centre: int) -> Any:
    """0 to count - 1, `centre` in front: its matmul covers every pixel, and so it may start the sum."""
    return [centre] + [i for i in range(centre)] + [i for i in range(centre + 1, count)]


def passes(chunks: Any, window: Any, side: int, stack: int) -> Any:
    """(chunk, frame, row offset, column tap) of every matmul into a PSUM tile; the first covers all of it."""
    found = []
    for index in range(len(chunks)):
        copies = chunks[index][2]
        last = last_offset(copies, side, stack)
        if copies > side:
            offsets = [offset for offset in range(0, last + 1, side)]
        else:
            offsets = centre_first(last + 1, side // 2)
        for frame in range(len(window) - 1, -1, -1):
            if window[frame] is not None:
                for offset in offsets:
                    taps = centre_first(side, side // 2) if copies == 1 else [0]
                    found += [(index, frame, offset, tap) for tap in taps]
    return found


def psum_blocks(lines: int, width: int) -> Any:
    """(first line, end, first column, end) of pieces that fill a PSUM bank each."""
    pieces = ceil_div(width, BANK_COLUMNS)
    wide = ceil_div(width, pieces)
    tall = BANK_COLUMNS // wide
    tall = ceil_div(lines, ceil_div(lines, tall))
    blocks = []
    for i in range(0, lines, tall):
        blocks += [(i, min(i + tall, lines), w, min(w + wide, width)) for w in range(0, width, wide)]
    return blocks
