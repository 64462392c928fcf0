"""Shifts in whole octaves: n ln 2, with n a whole number kept in fp32."""

import math
from typing import Any

from omni_neuron.kernels.attention.banks import COLUMNS, SUMS, in_bank
from omni_neuron.kernels.limits import PARTITIONS
from omni_neuron.kernels.nki import nisa, nl

OCTAVE = math.log(2.0)
NOTHING_SEEN = -(2.0**26)  # octaves, below those of any score
SHIFT_ROWS = 3


def whole_octaves(values: Any, scale: float) -> Any:
    """values * scale to the nearest whole number, kept between -2^26 and 2^26."""
    scaled = nl.ndarray(values.shape, nl.float32)
    nisa.tensor_scalar(scaled, values, nl.multiply, scale, op1=nl.maximum, operand1=NOTHING_SEEN)
    nisa.tensor_scalar(scaled, scaled, nl.minimum, -NOTHING_SEEN)
    whole = nl.ndarray(values.shape, nl.int32)
    nisa.tensor_copy(whole, scaled, engine=nisa.engine.vector)
    nisa.tensor_copy(scaled, whole, engine=nisa.engine.vector)
    return scaled


def on_all_partitions(dst: Any, row: Any, factor: float) -> None:
    """dst `[128, n]` = row `[1, n]` times a number; whole numbers come through the tensor engine exactly."""
    count = row.shape[1]
    ones = nl.ndarray((1, PARTITIONS), nl.float32)
    nisa.memset(ones, 1.0, engine=nisa.engine.vector)
    for first in range(0, count, COLUMNS):
        columns = min(COLUMNS, count - first)
        spread = in_bank((PARTITIONS, columns), nl.float32, first // COLUMNS % SUMS)
        nisa.nc_matmul(spread, ones, row[:, nl.ds(first, columns)], accumulate=False)
        nisa.tensor_scalar(dst[:, nl.ds(first, columns)], spread, nl.multiply, factor)


def shift_rows(dst: Any, octaves: Any, scale: float, bank: int) -> None:
    """dst `[3, n]` bfloat16: three rows that add up to -octaves ln 2 / scale, for octaves `[n, 1]`.

    Added to unscaled scores by a product with ones, they shift each column by its own number of octaves:
    three times 8 bits keep what float32 has.
    """
    count = octaves.shape[0]
    left = nl.ndarray((count, 1), nl.float32)
    nisa.tensor_scalar(left, octaves, nl.multiply, -OCTAVE / scale)
    parts = nl.ndarray((count, SHIFT_ROWS), nl.bfloat16)
    for i in range(SHIFT_ROWS):
        part = parts[:, nl.ds(i, 1)]
        nisa.tensor_copy(part, left, engine=nisa.engine.vector)
        nisa.tensor_tensor(left, left, part, nl.subtract)
    turned = in_bank((SHIFT_ROWS, count), nl.bfloat16, bank)
    nisa.nc_transpose(turned, parts, engine=nisa.engine.tensor)
    nisa.tensor_copy(dst, turned, engine=nisa.engine.vector)
