"""Causal 3-D convolution on a NeuronCore: an implicit GEMM, channels on partitions.

For every tap and chunk of input channels one matmul adds `weight[channels, outputs].T @ rows`, where the rows
are a view of frames in SBUF, shifted by the tap; nothing is unfolded. Taps that would read beyond the image
or before the first frame are left out of the matmul instead of multiplied by zeros, so frames are not padded
and arrive in long runs. `plan` says how channels that do not fill the PE are stacked.
"""

from typing import Any

from omni_neuron.kernels.causal_conv3d.loads import load_frame, load_weights
from omni_neuron.kernels.causal_conv3d.plan import BLOCKS_AT_ONCE, contraction, last_offset, plan
from omni_neuron.kernels.causal_conv3d.schedule import own_steps, passes, psum_blocks
from omni_neuron.kernels.limits import PARTITIONS, ceil_div
from omni_neuron.kernels.nki import nisa, nki, nl
from omni_neuron.kernels.tiles import itemsize


@nki.jit
def causal_conv3d_kernel(x: Any, weight: Any, bias: Any, history: Any) -> Any:
    """x `[B, Cin, T, H, W]`, weight `[kt, kh, kw, Cin, Cout]`, bias `[Cout]`, history `[B, Cin, kt-1, H, W]`.

    The history are the frames before x, None for zeros. The result is `[B, Cout, T, H, W]` in the dtype of x.
    """
    batch, channels, frames, height, width = x.shape
    kt, side, outputs = weight.shape[0], weight.shape[1], weight.shape[4]
    out = nl.ndarray((batch, outputs, frames, height, width), x.dtype, buffer=nl.shared_hbm)
    sets, stack, rows, wide, weights_ahead, frames_ahead = plan(
        channels, outputs, kt, side, height, width, itemsize(x.dtype)
    )
    chunks = contraction(channels, side)
    steps = own_steps(batch, frames, height, width, rows, wide, stack)
    work = []
    for index in range(len(sets)):
        work += [(index, step) for step in steps]
    coming: Any = []
    resident: Any = []
    later: Any = []
    window: Any = []
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


def fetch(x: Any, history: Any, chunks: Any, kt: int, side: int, stack: int, step: Any) -> Any:
    """The frames that a step needs and the one before it did not; None for one of zeros."""
    b, t, place = step
    top, rows, left, columns = place
    area = (top, ceil_div(rows, stack) * stack, left, columns)
    found = []
    for frame in range(t if t == 0 else t + kt - 1, t + kt):
        if frame >= kt - 1:
            found.append(load_frame(x[b, :, frame - kt + 1], chunks, side, stack, area))
        elif history is None:
            found.append(None)
        else:
            found.append(load_frame(history[b, :, frame], chunks, side, stack, area))
    return found


def convolve(
    out: Any,
    window: Any,
    chunks: Any,
    side: int,
    step: Any,
    span: Any,
    first: int,
    size: int,
    strips: Any,
    columns: Any,
) -> None:
    """One step for up to 128 output channels: matmuls, bias, and the result to HBM."""
    b, t, area = step
    top, rows, left, wide = area
    start, total, stack = span
    height, width = out.shape[3], out.shape[4]
    lines = ceil_div(rows, stack)
    result = nl.ndarray((stack * size, lines, wide), out.dtype)
    blocks = psum_blocks(lines, wide)
    taps = passes(chunks, window, side, stack)
    for group in range(0, len(blocks), BLOCKS_AT_ONCE):
        together = blocks[group : group + BLOCKS_AT_ONCE]
        sums = []
        for i0, i1, w0, w1 in together:
            sums.append(nl.ndarray((stack * size, i1 - i0, w1 - w0), nl.float32, buffer=nl.psum))
        for n in range(len(taps)):
            index, frame, offset, tap = taps[n]
            copies = chunks[index][2]
            block = last_offset(copies, side, stack) - offset
            stationary = strips[index][:, frame, tap, nl.ds(block * total + first, stack * size)]
            for k in range(len(together)):
                i0, i1, w0, w1 = together[k]
                low, high, begin, end, row, shift = i0, i1, w0, w1, stack * i0 + offset, 0
                if copies == 1:
                    # Line i of the sum reads image row `above + stack * i`, if there is one.
                    above = top + offset - side // 2
                    low = i0 if above + stack * i0 >= 0 else i0 + 1
                    high = min(i1, (height - 1 - above) // stack + 1)
                    row = above + stack * low - max(top - side // 2, 0)
                    # Column w reads image column `beside + w`, `shift` columns on in the tile.
                    beside = left + tap - side // 2
                    begin, end = max(w0, -beside), min(w1, width - beside)
                    shift = beside - max(left - side // 2, 0)
                if low < high and begin < end:
                    moving = window[frame][index][
                        :, row : row + stack * (high - low - 1) + 1 : stack, begin + shift : end + shift
                    ]
                    target = sums[k][:, low - i0 : high - i0, begin - w0 : end - w0]
                    nisa.nc_matmul(target, stationary, moving, accumulate=n > 0)
        for k in range(len(together)):
            i0, i1, w0, w1 = together[k]
            evict(result[:, i0:i1, w0:w1], sums[k], columns[first // PARTITIONS], (group + k) % 2)
    for row in range(stack):
        count = ceil_div(max(rows - row, 0), stack)
        if count > 0:
            below = top + row + stack * (count - 1) + 1
            target = out[b, nl.ds(start + first, size), t, top + row : below : stack, nl.ds(left, wide)]
            nisa.dma_copy(target, result[row * size : (row + 1) * size, 0:count])


def evict(target: Any, total: Any, bias: Any, turn: int) -> None:
    """Sum plus bias, rounded once; Scalar and Vector take turns."""
    if turn:
        nisa.tensor_scalar(target, total, nl.add, bias)
    else:
        nisa.activation(target, nl.copy, total, bias=bias)
