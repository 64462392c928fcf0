"""Causal 3-D convolution on a NeuronCore: an implicit GEMM, channels on partitions.

For every tap and chunk of input channels one matmul adds `weight[channels, outputs].T @ rows`, where the rows
are a view of frames in SBUF, shifted by the tap; nothing is unfolded. Taps that would read beyond the image
or before the first frame are left out of the matmul instead of multiplied by zeros, so frames are not padded
and arrive in long runs. `plan` says how channels that do not fill the PE are stacked.
"""

from typing import Any

from omni_neuron.kernels.causal_conv3d.loads import load_frame, load_weights
from omni_neuron.kernels.causal_conv3d.plan import (
    BLOCKS_AT_ONCE,
    PARTITIONS,
    PSUM_COLUMNS,
    contraction,
    last_offset,
    plan,
)
from omni_neuron.kernels.nki import nisa, nki, nl
from omni_neuron.kernels.tiles import share


@nki.jit
def causal_conv3d_kernel(x: Any, weight: Any, bias: Any, history: Any) -> Any:
    """x `[B, Cin, T, H, W]`, weight `[kt, kh, kw, Cin, Cout]`, bias `[Cout]`, history `[B, Cin, kt-1, H, W]`.

    The history are the frames before x, None for zeros. The result is `[B, Cout, T, H, W]` in the dtype of x.
    """
    batch, channels, frames, height, width = x.shape
    kt, side, outputs = weight.shape[0], weight.shape[1], weight.shape[4]
    out = nl.ndarray((batch, outputs, frames, height, width), x.dtype, buffer=nl.shared_hbm)
    itemsize = 4 if x.dtype == nl.float32 else 2
    sets, stack, rows, weights_ahead, frames_ahead = plan(
        channels, outputs, kt, side, height, width, itemsize
    )
    chunks = contraction(channels, side)
    steps = own_steps(batch, frames, height, rows, stack)
    work = [(index, step) for index in range(len(sets)) for step in steps]
    coming, resident, later, window = [], [], [], []
    for n in range(len(work)):
        index, step = work[n]
        if n == 0 or not frames_ahead:
            coming = fetch(x, history, chunks, kt, side, stack, step)
        if n == 0 or index != work[n - 1][0]:
            ready = weights_ahead and index > 0
            resident = later if ready else load_weights(weight, bias, chunks, sets[index])
            if weights_ahead and index + 1 < len(sets):
                later = load_weights(weight, bias, chunks, sets[index + 1])
        window = coming if step[1] == 0 else window[1:] + coming
        if frames_ahead and n + 1 < len(work):
            coming = fetch(x, history, chunks, kt, side, stack, work[n + 1][1])
        for span, strips, columns in resident:
            for first in range(0, span[1], PARTITIONS):
                size = min(PARTITIONS, span[1] - first)
                convolve(out, window, chunks, side, step, span, first, size, strips, columns)
    return out


def own_steps(batch: int, frames: int, height: int, rows: int, stack: int) -> Any:
    """(batch entry, frame, first row, rows) of this core's steps: frame after frame of a band of rows."""
    first, last = share(-(-height // stack))
    first, last = first * stack, min(last * stack, height)
    bands = max(-(-(last - first) // rows), 1)
    each = -(-(last - first) // (bands * stack)) * stack
    return [
        (b, t, top, min(each, last - top))
        for b in range(batch)
        for top in range(first, last, max(each, 1))
        for t in range(frames)
    ]


def fetch(x: Any, history: Any, chunks: Any, kt: int, side: int, stack: int, step: Any) -> Any:
    """The frames that a step needs and the one before it did not; None for one of zeros."""
    b, t, top, rows = step
    rows = -(-rows // stack) * stack
    found = []
    for frame in range(t if t == 0 else t + kt - 1, t + kt):
        if frame >= kt - 1:
            found.append(load_frame(x[b, :, frame - kt + 1], chunks, side, stack, top, rows))
        elif history is None:
            found.append(None)
        else:
            found.append(load_frame(history[b, :, frame], chunks, side, stack, top, rows))
    return found


def centre_first(count: int, centre: int) -> Any:
    """0 to count - 1, `centre` in front: its matmul covers every pixel, and so it may start the sum."""
    return [centre] + [i for i in range(count) if i != centre]


def passes(chunks: Any, window: Any, side: int, stack: int) -> Any:
    """(chunk, frame, row offset, column tap) of every matmul into one PSUM tile; the first covers all of it."""
    found = []
    for index in range(len(chunks)):
        copies = chunks[index][2]
        last = last_offset(copies, side, stack)
        offsets = range(0, last + 1, side) if copies > side else centre_first(last + 1, side // 2)
        for frame in range(len(window) - 1, -1, -1):
            if window[frame] is not None:
                for offset in offsets:
                    for column in centre_first(side, side // 2) if copies == 1 else [0]:
                        found.append((index, frame, offset, column))
    return found


def convolve(
    out: Any, window: Any, chunks: Any, side: int, step: Any, span: Any, first: int, size: int,
    strips: Any, columns: Any,
) -> None:  # fmt: skip
    """One step for up to 128 output channels: matmuls, bias, and the result to HBM."""
    b, t, top, rows = step
    start, total, stack = span
    height, width = out.shape[3], out.shape[4]
    lines = -(-rows // stack)
    result = nl.ndarray((stack * size, lines, width), out.dtype)
    blocks = psum_blocks(lines, width)
    for group in range(0, len(blocks), BLOCKS_AT_ONCE):
        together = blocks[group : group + BLOCKS_AT_ONCE]
        sums = [
            nl.ndarray((stack * size, i1 - i0, w1 - w0), nl.float32, nl.psum) for i0, i1, w0, w1 in together
        ]
        taps = passes(chunks, window, side, stack)
        for n in range(len(taps)):
            index, frame, offset, column = taps[n]
            copies = chunks[index][2]
            block = last_offset(copies, side, stack) - offset
            stationary = strips[index][:, frame, column, nl.ds(block * total + first, stack * size)]
            tile = window[frame][index]
            for k in range(len(together)):
                i0, i1, w0, w1 = together[k]
                low, high, left, right, row, shift = i0, i1, w0, w1, stack * i0 + offset, 0
                if copies == 1:
                    # Line i of the sum reads image row `above + stack * i`, if there is one.
                    above = top + offset - side // 2
                    low = i0 if above + stack * i0 >= 0 else i0 + 1
                    high = min(i1, (height - 1 - above) // stack + 1)
                    row = above + stack * low - max(top - side // 2, 0)
                    shift = column - side // 2
                    left, right = max(w0, -shift), min(w1, width - shift)
                if low < high and left < right:
                    moving = tile[
                        :, row : row + stack * (high - low - 1) + 1 : stack, left + shift : right + shift
                    ]
                    target = sums[k][:, low - i0 : high - i0, left - w0 : right - w0]
                    nisa.nc_matmul(target, stationary, moving, accumulate=n > 0)
        for k in range(len(together)):
            i0, i1, w0, w1 = together[k]
            evict(result[:, i0:i1, w0:w1], sums[k], columns[first // PARTITIONS], (group + k) % 2)
    for row in range(stack):
        count = -(-(rows - row) // stack)
        if count > 0:
            below = top + row + stack * (count - 1) + 1
            target = out[b, nl.ds(start + first, size), t, top + row : below : stack]
            nisa.dma_copy(target, result[row * size : (row + 1) * size, 0:count])


def psum_blocks(lines: int, width: int) -> Any:
    """(first line, end, first column, end) of pieces that fill a PSUM bank each."""
    pieces = -(-width // PSUM_COLUMNS)
    wide = -(-width // pieces)
    tall = PSUM_COLUMNS // wide
    tall = -(-lines // -(-lines // tall))
    return [
        (i, min(i + tall, lines), w, min(w + wide, width))
        for i in range(0, lines, tall)
        for w in range(0, width, wide)
    ]


def evict(target: Any, total: Any, bias: Any, turn: int) -> None:
    """Sum plus bias, rounded once; Scalar and Vector take turns."""
    if turn:
        nisa.tensor_scalar(target, total, nl.add, bias)
    else:
        nisa.activation(target, nl.copy, total, bias=bias)
