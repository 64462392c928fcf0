from typing import Any

import numpy as np
import pytest

from omni_neuron.sim import KernelError, simulate
from omni_neuron.sim.nki import language as nl


@pytest.mark.parametrize(("target", "kib"), [("trn2", 208), ("trn3", 240)])
def test_tile_sizes_are_those_of_the_target(target: str, kib: int) -> None:
    def kernel() -> Any:
        return (nl.tile_size.sbuf_fmax_bytes, nl.tile_size.sbuf_fmax, nl.tile_size.sbuf_size_bytes)

    assert simulate(kernel, target=target) == (kib * 1024, kib * 256, kib * 1024 * 128)
    assert (nl.tile_size.pmax, nl.tile_size.psum_fmax, nl.tile_size.gemm_moving_fmax) == (128, 512, 512)


def test_transposes_on_the_pe_take_a_bank(monkeypatch: pytest.MonkeyPatch) -> None:
    assert nl.tile_size.psum_num_banks == 8
    monkeypatch.setenv("NKI_DMA_TRANSPOSE_AS_PE_TRANSPOSE", "1")
    assert nl.tile_size.psum_num_banks == 7


def test_filled_tensors() -> None:
    def kernel(x: Any) -> Any:
        made = (
            nl.zeros((2, 3), nl.float32, buffer=nl.shared_hbm), nl.ones((2, 3), nl.int8,
            buffer=nl.shared_hbm),
            nl.full((2, 3), 2.5, nl.bfloat16, buffer=nl.shared_hbm), nl.zeros_like(x, buffer=nl.shared_hbm),
        )  # fmt: skip
        assert nl.empty_like(x).shape == x.shape
        return made

    zeros, ones, full, like = simulate(kernel, np.ones((4, 4), np.float32))
    assert (zeros == 0).all()
    assert ones.dtype == np.int8
    assert (full.astype(np.float32) == 2.5).all()
    assert like.shape == (4, 4)


def test_constants_and_identities() -> None:
    from omni_neuron.sim.nki import isa as nisa

    def kernel() -> Any:
        table = nl.shared_constant(np.arange(6, dtype=np.float32).reshape(2, 3))
        out = nl.ndarray((2, 3), nl.float32, buffer=nl.shared_hbm)
        eye = nl.ndarray((5, 5), nl.bfloat16, buffer=nl.shared_hbm)
        nisa.dma_copy(out, table)
        nisa.dma_copy(eye, nl.shared_identity_matrix(5, dtype=nl.bfloat16))
        return out, eye

    table, eye = simulate(kernel)
    np.testing.assert_array_equal(table, np.arange(6).reshape(2, 3))
    np.testing.assert_array_equal(eye.astype(np.float32), np.eye(5))


@pytest.mark.parametrize(
    ("call", "rule"),
    [
        (lambda: nl.ndarray((4, 4), "int64"), "dtype"),
        (lambda: nl.ndarray((2, 2, 2, 2, 2, 2), nl.float32), "shape"),
        (lambda: nl.ndarray((4, 0), nl.float32), "shape"),
        (lambda: nl.ndarray((4, 4), nl.float32, buffer="sbuf!"), "memory-space"),
        (lambda: nl.ndarray((4, 4), nl.float32, buffer=nl.hbm, address=(0, 0)), "address"),
    ],
)  # fmt: skip
def test_impossible_tensors_are_refused(call: Any, rule: str) -> None:
    with pytest.raises(KernelError) as caught:
        simulate(lambda: call())
    assert caught.value.rule == rule


def test_nothing_exists_outside_of_a_kernel() -> None:
    with pytest.raises(KernelError, match="exist only while a kernel runs"):
        nl.ndarray((4, 4), nl.float32)
