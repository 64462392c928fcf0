from typing import Any

import numpy as np
import pytest

from omni_neuron.sim import KernelError, simulate
from omni_neuron.sim.nki import isa as nisa
from omni_neuron.sim.nki import language as nl

X = np.arange(4 * 128 * 16, dtype=np.float32).reshape(4, 128, 16)


def rotating(slots: int, delay: int) -> np.ndarray:
    """Tiles i on slot i % slots; each is stored `delay` steps after it was loaded."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        tiles = [
            nl.ndarray((128, 16), nl.float32, name=f"tile{i}", address=(0, i % slots * 64)) for i in range(4)
        ]
        for i in range(4 + delay):
            if i < 4:
                nisa.dma_copy(tiles[i], x[i])
            if i >= delay:
                nisa.dma_copy(out[i - delay], tiles[i - delay])
        return out

    return simulate(kernel, X)


def test_enough_slots_hold_what_is_in_flight() -> None:
    np.testing.assert_array_equal(rotating(slots=2, delay=1), X)
    np.testing.assert_array_equal(rotating(slots=1, delay=0), X)


def test_too_few_slots_lose_a_tile_before_it_is_read() -> None:
    with pytest.raises(KernelError) as caught:
        rotating(slots=1, delay=1)
    assert caught.value.rule == "uninitialised"
    assert "tile0 [128, 16]" in str(caught.value)
    assert "overwritten through tile1" in str(caught.value)


def test_only_the_bytes_that_overlap_are_lost() -> None:
    def kernel(x: Any, offset: int) -> Any:
        first = nl.ndarray((128, 16), nl.float32, address=(0, 0))
        second = nl.ndarray((128, 16), nl.float32, address=(0, 32))
        nisa.dma_copy(first, x[0])
        nisa.dma_copy(second, x[1])
        out = nl.ndarray((128, 8), nl.float32, buffer=nl.shared_hbm)
        nisa.dma_copy(out, first[:, nl.ds(offset, 8)])
        return out

    np.testing.assert_array_equal(simulate(kernel, X, 0), X[0, :, :8])
    with pytest.raises(KernelError, match="1024 elements"):
        simulate(kernel, X, 8)


def test_partitions_apart_do_not_overlap() -> None:
    def kernel(x: Any) -> Any:
        out = nl.ndarray((2, 64, 16), x.dtype, buffer=nl.shared_hbm)
        tiles = [nl.ndarray((64, 16), nl.float32, address=(64 * i, 0)) for i in range(2)]
        for i in range(2):
            nisa.dma_copy(tiles[i], x[i, 0:64])
        for i in range(2):
            nisa.dma_copy(out[i], tiles[i])
        return out

    np.testing.assert_array_equal(simulate(kernel, X), X[:2, :64])


def test_a_new_tensor_does_not_inherit_what_lay_at_its_address() -> None:
    def kernel(x: Any) -> Any:
        nisa.dma_copy(nl.ndarray((128, 16), nl.float32, address=(0, 0)), x[0])
        fresh = nl.ndarray((128, 16), nl.float32, name="fresh", address=(0, 0))
        nisa.dma_copy(fresh[0:64], x[1, 0:64])
        out = nl.ndarray((128, 16), x.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(out, fresh)
        return out

    with pytest.raises(KernelError, match=r"fresh .* was never written"):
        simulate(kernel, X)
