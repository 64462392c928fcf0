"""What is not defined travels with the data, and is an error where it arrives."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from omni_neuron.sim import KernelError, simulate
from omni_neuron.sim.nki import isa as nisa
from omni_neuron.sim.nki import language as nl

ONES = np.ones((128, 64), np.float32)


def run(body: Callable[[Any, Any], None], precise: bool = True) -> np.ndarray:
    """`body(dst, tile)` on a tile whose rows 100 and up were never written, then the first 32 rows of dst."""

    def kernel(x: Any) -> Any:
        tile = nl.ndarray((128, 64), nl.float32, name="tile")
        nisa.dma_copy(tile[0:100], x[0:100])
        dst = nl.ndarray((128, 64), nl.float32, name="dst")
        body(dst, tile)
        out = nl.ndarray((32, 64), nl.float32, buffer=nl.shared_hbm, name="out")
        nisa.dma_copy(out, dst[0:32])
        return out

    return simulate(kernel, ONES, precise=precise)


def test_garbage_that_reaches_no_result_is_no_error() -> None:
    np.testing.assert_array_equal(run(lambda dst, t: nisa.tensor_scalar(dst, t, nl.add, 1.0)), ONES[:32] + 1)


def _matmul(dst: Any, tile: Any) -> None:
    product = nl.ndarray((64, 64), nl.float32, buffer=nl.psum)
    nisa.nc_matmul(product, tile, tile)
    nisa.tensor_copy(dst[0:64], product)


def _transpose(dst: Any, tile: Any) -> None:
    turned = nl.ndarray((64, 128), nl.float32, buffer=nl.psum)
    nisa.nc_transpose(turned, tile)
    nisa.tensor_copy(dst[0:64], turned[:, 64:128])


def _accumulate(dst: Any, tile: Any) -> None:
    """Garbage first, then something defined on top of it."""
    product = nl.ndarray((64, 64), nl.float32, buffer=nl.psum)
    nisa.nc_matmul(product, tile, tile)
    nisa.nc_matmul(product, tile[0:32], tile[0:32])
    nisa.tensor_copy(dst[0:64], product)


def _sum_of_rows(dst: Any, tile: Any) -> None:
    turned = nl.ndarray((64, 128), nl.float32, buffer=nl.psum)
    scratch = nl.ndarray((64, 128), nl.float32)
    nisa.nc_transpose(turned, tile)
    nisa.activation_reduce(scratch, nl.exp, turned, nl.add, dst[0:64, 0:1])


def _predicated(dst: Any, tile: Any) -> None:
    """What is copied hangs on a predicate that nobody wrote."""
    nisa.memset(tile, 1.0)
    nisa.tensor_copy_predicated(dst, tile, nl.ndarray((128, 64), nl.uint8, name="tile"))


REACHING = {
    "a predicate": _predicated,
    "an accumulation": _accumulate,
    "a sum in registers": _sum_of_rows,
    "a contraction over partitions": _matmul,
    "a transpose": _transpose,
    "a reduction over partitions": lambda dst, t: nisa.tensor_partition_reduce(dst[0:1], nl.add, t),
}


@pytest.mark.parametrize("name", REACHING)
def test_garbage_that_reaches_a_result_is_traced_to_its_source(name: str) -> None:
    def body(dst: Any, tile: Any) -> None:
        nisa.memset(dst, 0.0)
        REACHING[name](dst, tile)

    with pytest.raises(KernelError) as caught:
        run(body)
    assert caught.value.rule == "uninitialised"
    assert "tile [128, 64]" in str(caught.value)
    assert "was never written and then read by" in str(caught.value)


def test_a_mask_takes_garbage_out() -> None:
    def body(dst: Any, tile: Any) -> None:
        # keep row p where 99 - p >= 0
        nisa.affine_select(dst, [[0, 64]], -1, tile, 0.0, nl.greater_equal, offset=99)
        _matmul(dst, dst)

    np.testing.assert_array_equal(run(body), np.full((32, 64), 100.0))


def test_a_range_takes_garbage_out() -> None:
    def kernel(x: Any) -> Any:
        tile, low, high = (
            nl.ndarray((128, 64), nl.float32),
            nl.zeros((128, 1), nl.float32),
            nl.ndarray((128, 1), nl.float32),
        )
        nisa.memset(high, 48.0)
        nisa.dma_copy(tile[:, 0:48], x[:, 0:48])
        top = nl.ndarray((128, 1), nl.float32)
        nisa.range_select(tile, tile, nl.greater_equal, nl.less, low, high, reduce_res=top)
        out = nl.ndarray((128, 1), nl.float32, buffer=nl.shared_hbm)
        nisa.dma_copy(out, top)
        return out

    np.testing.assert_array_equal(simulate(kernel, ONES), ONES[:, :1])


def test_an_output_that_is_not_written_everywhere_is_refused() -> None:
    def kernel(x: Any) -> Any:
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm, name="out")
        nisa.dma_copy(out[0:127], x[0:127])
        return out

    with pytest.raises(KernelError, match=r"64 elements of the result out.*the first at \[127, 0\]"):
        simulate(kernel, ONES)
    poisoned = simulate(kernel, ONES, allow_undefined=True)
    assert np.isnan(poisoned[127]).all()
    np.testing.assert_array_equal(poisoned[:127], ONES[:127])


def test_garbage_in_an_argument_that_is_written_is_refused() -> None:
    def kernel(x: Any) -> None:
        nisa.dma_copy(x[0:4], nl.ndarray((4, 64), nl.float32, name="tile"))

    with pytest.raises(KernelError, match="256 elements of the result arg0"):
        simulate(kernel, ONES.copy())


def test_garbage_steers_nothing() -> None:
    def kernel() -> None:
        index = nl.ndarray((1, 1), nl.int32)
        nisa.register_load(nisa.register_alloc(), index)

    with pytest.raises(KernelError, match="used as an address and is not defined"):
        simulate(kernel)


def test_poison_is_not_a_number() -> None:
    """Whoever turns off the checks still sees NaN."""

    def kernel() -> Any:
        return nl.ndarray((2, 2), nl.bfloat16, buffer=nl.shared_hbm).buffer_.bytes.view("<u2")[0]

    assert simulate(kernel) == 0xFFFF


def test_definedness_follows_a_reinterpreted_type() -> None:
    def kernel(x: Any) -> Any:
        tile = nl.ndarray((128, 64), nl.float32)
        nisa.dma_copy(tile, x)
        halves = tile.view(nl.uint16)
        hole = nl.ndarray((128, 1), nl.uint16)
        nisa.tensor_copy(halves[:, 1:2], hole)
        out = nl.ndarray((128, 63), nl.float32, buffer=nl.shared_hbm)
        nisa.dma_copy(out, tile[:, 1:64])
        bad = nl.ndarray((128, 1), nl.float32, buffer=nl.shared_hbm, name="bad")
        nisa.dma_copy(bad, tile[:, 0:1])
        return out, bad

    with pytest.raises(KernelError, match="128 elements of the result bad"):
        simulate(kernel, ONES)
