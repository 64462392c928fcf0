"""What the convolution brings into SBUF: weights, biases and rows of frames."""

from typing import Any

from omni_neuron.kernels.causal_conv3d.plan import PARTITIONS, last_offset, tile_rows
from omni_neuron.kernels.nki import nisa, nl


def load_weights(weight: Any, bias: Any, chunks: Any, spans: Any) -> Any:
    """(span, a tile of weights for each chunk, a tile of bias for each 128 channels), for each span."""
    return [
        (span, [chunk_weights(weight, chunk, span) for chunk in chunks], biases(bias, span)) for span in spans
    ]


def chunk_weights(weight: Any, chunk: Any, span: Any) -> Any:
    """Strips `[copies * count, kt, kw or 1, blocks * columns]` of one chunk.

    Block i of a strip holds the row tap `last + (row copy) - i`, zeros where there is none. The weights for
    row offset u and its `stack` image rows are the `stack` blocks from `last - u` on.
    """
    first, count, copies = chunk
    start, columns, stack = span
    kt, side = weight.shape[0], weight.shape[1]
    last = last_offset(copies, side, stack)
    blocks = last + stack
    own_columns = side if copies == 1 else 1
    strips = nl.ndarray((copies * count, kt, own_columns, blocks * columns), weight.dtype)
    if stack > 1:
        nisa.memset(strips, 0.0)
    for copy in range(copies):
        row, column = copy // side, copy % side
        part = strips[copy * count : (copy + 1) * count]
        for frame in range(kt - 1, -1, -1):
            for tap in range(side):
                block = last + row - tap
                if 0 <= block < blocks:
                    kw = nl.ds(0, side) if copies == 1 else nl.ds(column, 1)
                    source = weight[frame, tap, kw, nl.ds(first, count), nl.ds(start, columns)]
                    nisa.dma_copy(
                        part[:, frame, :, nl.ds(block * columns, columns)], source.permute((1, 0, 2))
                    )
    return strips


def biases(bias: Any, span: Any) -> Any:
    """Columns `[stack * size, 1]` in fp32, one for each tile of 128 output channels."""
    start, columns, stack = span
    tiles = []
    for first in range(0, columns, PARTITIONS):
        size = min(PARTITIONS, columns - first)
        stored = nl.ndarray((stack * size, 1), bias.dtype)
        for row in range(stack):
            nisa.dma_copy(stored[row * size : (row + 1) * size], bias[nl.ds(start + first, size)])
        tile = nl.ndarray((stack * size, 1), nl.float32)
        nisa.tensor_copy(tile, stored)
        tiles.append(tile)
    return tiles


def load_frame(frame: Any, chunks: Any, side: int, stack: int, top: int, rows: int) -> Any:
    """A tile of each chunk of the frame `[C, H, W]`, for output rows from `top` on."""
    tiles = []
    for chunk in chunks:
        if chunk[2] == 1:
            tiles.append(plain_rows(frame, chunk, side, top, rows))
        else:
            tiles.append(shifted_rows(frame, chunk, side, stack, top, rows))
    return tiles


def plain_rows(frame: Any, chunk: Any, side: int, top: int, rows: int) -> Any:
    """Rows as they are, those of the halo with them as far as the image goes."""
    first, count, _ = chunk
    low, high = max(top - side // 2, 0), min(top + rows + side // 2, frame.shape[1])
    tile = nl.ndarray((count, high - low, frame.shape[2]), frame.dtype)
    nisa.dma_copy(tile, frame[nl.ds(first, count), low:high])
    return tile


def shifted_rows(frame: Any, chunk: Any, side: int, stack: int, top: int, rows: int) -> Any:
    """Copies shifted by columns, and by rows where there are more than `side`; zeros beyond the image.

    Row j of a copy holds image row `top + j - 1`, plus the copy's shift where rows are shifted.
    """
    first, count, copies = chunk
    height, width = frame.shape[1], frame.shape[2]
    lines = tile_rows(copies, side, stack, rows)
    tile = nl.ndarray((copies * count, lines, width), frame.dtype)
    nisa.memset(tile[:, :, 0:1], 0.0, nisa.engine.gpsimd)
    nisa.memset(tile[:, :, width - 1 : width], 0.0, nisa.engine.gpsimd)
    farthest = copies // side - 1
    above = max(1 - top, 0)
    below = max(top + lines - 1 + farthest - height, 0)
    if above:
        nisa.memset(tile[:, 0:above], 0.0, nisa.engine.gpsimd)
    if below:
        nisa.memset(tile[:, max(lines - below, 0) : lines], 0.0, nisa.engine.gpsimd)
    for copy in range(copies):
        down, right = copy // side - 1, copy % side - 1
        low, high = max(top + down, 0), min(top + down + lines, height)
        left, end = max(right, 0), width + min(right, 0)
        if low < high and left < end:
            nisa.dma_copy(
                tile[
                    copy * count : (copy + 1) * count,
                    low - top - down : high - top - down,
                    left - right : end - right,
                ],
                frame[nl.ds(first, count), low:high, left:end],
            )
    return tile
