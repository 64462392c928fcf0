from typing import Any

import ml_dtypes
import numpy as np
import pytest

from omni_neuron.sim import simulate
from omni_neuron.sim.nki import isa as nisa
from omni_neuron.sim.nki import language as nl
from omni_neuron.sim.numerics.mx import SCALE_BIAS

RNG = np.random.default_rng(12)


def dequantised(x: np.ndarray, element: Any, emax: int) -> np.ndarray:
    """The mathematics of the format, written out group by group in float64."""
    out = np.empty(x.shape, np.float64)
    for p in range(0, x.shape[0], 8):
        for c in range(0, x.shape[1], 4):
            group = x[p : p + 8, c : c + 4].astype(np.float64)
            scale = 2.0 ** (np.floor(np.log2(np.abs(group).max())) - (emax - 1))
            out[p : p + 8, c : c + 4] = (group / scale).astype(element).astype(np.float64) * scale
    return out


@pytest.mark.parametrize(
    ("dtype", "element", "emax"),
    [(nl.float8_e4m3fn_x4, ml_dtypes.float8_e4m3fn, 8), (nl.float8_e5m2_x4, ml_dtypes.float8_e5m2, 15)],
)
@pytest.mark.parametrize("k", [32, 96, 128])
def test_quantised_products(dtype: Any, element: Any, emax: int, k: int) -> None:
    a = RNG.standard_normal((k, 4 * 16)).astype(ml_dtypes.bfloat16)
    b = RNG.standard_normal((k, 4 * 24)).astype(ml_dtypes.bfloat16)

    def kernel(x: Any, y: Any) -> Any:
        packed = []
        for source in (x, y):
            tile = nl.ndarray(source.shape, source.dtype)
            nisa.dma_copy(tile, source)
            quantised = nl.ndarray((k, source.shape[1] // 4), dtype)
            scale = nl.ndarray((k, source.shape[1] // 4), nl.uint8)
            nisa.quantize_mx(quantised, tile, scale)
            packed.append((quantised, scale))
        psum = nl.ndarray((16, 24), nl.float32, buffer=nl.psum)
        nisa.nc_matmul_mx(psum, packed[0][0], packed[1][0], packed[0][1], packed[1][1])
        tile, out = nl.ndarray((16, 24), nl.float32), nl.ndarray((16, 24), nl.float32, buffer=nl.shared_hbm)
        nisa.tensor_copy(tile, psum)
        nisa.dma_copy(out, tile)
        return out

    found = simulate(kernel, a, b, target="trn3")
    left = dequantised(a, element, emax).reshape(k, 16, 4)
    right = dequantised(b, element, emax).reshape(k, 24, 4)
    np.testing.assert_allclose(found, np.einsum("kmi,kni->mn", left, right), rtol=1e-4, atol=1e-4)


def test_scales_lie_in_the_first_four_partitions_of_a_quadrant() -> None:
    x = np.zeros((64, 4), ml_dtypes.bfloat16)
    for group in range(8):
        x[8 * group : 8 * group + 8] = 2.0**group

    def kernel(source: Any) -> Any:
        tile, quantised = nl.ndarray((64, 4), nl.bfloat16), nl.ndarray((64, 1), nl.float8_e4m3fn_x4)
        scale = nl.zeros((64, 1), nl.uint8)
        nisa.dma_copy(tile, source)
        nisa.quantize_mx(quantised, tile, scale)
        out = nl.ndarray((64, 1), nl.uint8, buffer=nl.shared_hbm)
        nisa.dma_copy(out, scale)
        return out

    found = simulate(kernel, x, target="trn3")[:, 0].astype(int)
    for group in range(8):
        assert found[32 * (group // 4) + group % 4] - SCALE_BIAS == group - 7
    assert (found[4:32] == 0).all()


def test_several_tensors_share_one_scale_tile() -> None:
    """The second one's scales go four partitions further, through a view of the tile."""
    a = RNG.standard_normal((64, 32)).astype(ml_dtypes.bfloat16)

    def kernel(x: Any, shared: bool) -> Any:
        tile = nl.ndarray((64, 32), nl.bfloat16)
        nisa.dma_copy(tile, x)
        scales = nl.zeros((64, 16), nl.uint8)
        packed = [nl.ndarray((64, 8), nl.float8_e4m3fn_x4) for _ in range(2)]
        views = [scales[:, 0:8], scales[4:64, 0:8] if shared else scales[:, 8:16]]
        for quantised, view in zip(packed, views, strict=True):
            nisa.quantize_mx(quantised, tile, view)
        psum = nl.ndarray((8, 8), nl.float32, buffer=nl.psum)
        nisa.nc_matmul_mx(psum, packed[0], packed[1], views[0], views[1])
        out, result = nl.ndarray((8, 8), nl.float32, buffer=nl.shared_hbm), nl.ndarray((8, 8), nl.float32)
        nisa.tensor_copy(result, psum)
        nisa.dma_copy(out, result)
        return out

    shared, apart = (simulate(kernel, a, flag, target="trn3") for flag in (True, False))
    np.testing.assert_array_equal(shared, apart)
    assert shared.any()
