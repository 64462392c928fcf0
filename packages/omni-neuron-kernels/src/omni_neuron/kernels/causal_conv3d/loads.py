"""What the convolution brings into SBUF: weights, biases and rows of frames."""

from typing import Any

from omni_neuron.kernels.causal_conv3d.plan import last_offset, tile_rows
from omni_neuron.kernels.limits import PARTITIONS
from omni_neuron.kernels.nki import nisa, nl


def load_weights(weight: Any, bias: Any, chunks: Any, spans: Any) -> Any:
    """(span, a tile of weights for each chunk, a tile of bias for each 128 channels), for each span."""
    loaded = []
    for span in spans:
        strips = []
        for chunk in chunks:
            strips.append(chunk_weights(weight, chunk, span))
        loaded.append((span, strips, biases(bias, span)))
    return loaded


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


def load_frame(frame: Any, chunks: Any, side: int, stack: int, area: Any) -> Any:
    """A tile of each chunk of the frame `[C, H, W]`, for an area (top, rows, left, columns) of the output."""
    tiles = []
    for chunk in chunks:
        if chunk[2] == 1:
            tiles.append(plain_rows(frame, chunk, side, area))
        else:
            tiles.append(shifted_rows(frame, chunk, side, stack, area))
    return tiles


def plain_rows(frame: Any, chunk: Any, side: int, area: Any) -> Any:
    """The area as it is, with its halo as far as the image goes."""
    first, count, _ = chunk
    top, rows, left, columns = area
    low, high = max(top - side // 2, 0), min(top + rows + side // 2, frame.shape[1])
    begin, end = max(left - side // 2, 0), min(left + columns + side // 2, frame.shape[2])
    tile = nl.ndarray((count, high - low, end - begin), frame.dtype)
    nisa.dma_copy(tile, frame[nl.ds(first, count), low:high, begin:end])
    return tile


def shifted_rows(frame: Any, chunk: Any, side: int, stack: int, area: Any) -> Any:
    """Copies shifted by columns, and by rows where there are more than `side`; zeros beyond the image.

    Row j and column k of a copy hold the pixel `(top + j - 1, left + k - 1)`, plus the copy's shifts.
    """
    first, count, copies = chunk
    top, rows, left, columns = area
    height, width = frame.shape[1], frame.shape[2]
    lines = tile_rows(copies, side, stack, rows)
    tile = nl.ndarray((copies * count, lines, columns), frame.dtype)
    if left == 0:
        nisa.memset(tile[:, :, 0:1], 0.0, engine=nisa.engine.gpsimd)
    if left + columns == width:
        nisa.memset(tile[:, :, columns - 1 : columns], 0.0, engine=nisa.engine.gpsimd)
    above = max(1 - top, 0)
    below = max(top + lines + copies // side - 2 - height, 0)
    if above:
        nisa.memset(tile[:, 0:above], 0.0, engine=nisa.engine.gpsimd)
    if below:
        nisa.memset(tile[:, max(lines - below, 0) : lines], 0.0, engine=nisa.engine.gpsimd)
    for copy in range(copies):
        down, right = top + copy // side - 1, left + copy % side - 1
        low, high = max(down, 0), min(down + lines, height)
        begin, end = max(right, 0), min(right + columns, width)
        if low < high and begin < end:
            part = tile[copy * count : (copy + 1) * count]
            nisa.dma_copy(
                part[:, low - down : high - down, begin - right : end - right],
                frame[nl.ds(first, count), low:high, begin:end],
            )
    return tile
