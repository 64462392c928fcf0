"""MX block formats: groups of 8 partitions x 4 neighbouring elements that share one power-of-two scale."""

import ml_dtypes
import numpy as np

from omni_neuron.sim.numerics.formats import Array, DType, encode, float8_e4m3fn

GROUP_PARTITIONS = 8
LANES = 4
SCALE_BIAS = 127


def unpack(stored: Array, dtype: DType) -> Array:
    """Packed elements `[P, N]` as fp32 `[P, N, 4]`."""
    assert dtype.element is not None
    if stored.dtype == np.uint16:
        nibbles = np.stack([(stored >> (4 * lane)) & 0xF for lane in range(LANES)], axis=-1).astype(np.uint8)
        return nibbles.view(ml_dtypes.float4_e2m1fn).astype(np.float32, copy=False)  # type: ignore[no-any-return]
    lanes = np.ascontiguousarray(stored)[..., None].view(dtype.element.storage)
    return np.asarray(lanes.astype(np.float32))


def pack(values: Array, dtype: DType) -> Array:
    """fp32 `[P, N, 4]` rounded and packed to `[P, N]`; values beyond the format saturate."""
    assert dtype.element is not None
    if dtype.storage == np.uint16:
        codes = np.clip(values, -6.0, 6.0).astype(ml_dtypes.float4_e2m1fn).view(np.uint8).astype(np.uint16)
        shifted = [codes[..., lane] << (4 * lane) for lane in range(LANES)]
        return np.asarray(np.bitwise_or.reduce(shifted), dtype=np.uint16)
    return np.ascontiguousarray(encode(values, dtype.element)).view(np.uint32)[..., 0]


def group_scales(values: Array, dtype: DType) -> Array:
    """Biased exponents (uint8) `[P / 8, N]` for fp32 `[P, N, 4]`: 2^(floor(log2 amax) - (Emax - 1))."""
    emax = 8 if dtype.element is float8_e4m3fn else 15
    partitions, columns, _ = values.shape
    grouped = np.abs(values).reshape(partitions // GROUP_PARTITIONS, GROUP_PARTITIONS, columns, LANES)
    amax = grouped.max(axis=(1, 3))
    _, exponent = np.frexp(amax)  # amax = m * 2^exponent with m in [0.5, 1)
    biased = exponent - 1 - (emax - 1) + SCALE_BIAS
    return np.where(amax > 0, np.clip(biased, 0, 254), 0).astype(np.uint8)


def scale_rows(scales: Array, partitions: int) -> Array:
    """Scales `[P / 8, N]` repeated to the partitions they hold for, as fp32 factors `[P, N]`."""
    factors = np.exp2(scales.astype(np.float32) - SCALE_BIAS)
    factors[scales == 255] = np.nan
    return np.repeat(factors, GROUP_PARTITIONS, axis=0)[:partitions]
