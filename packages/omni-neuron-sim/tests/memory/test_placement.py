from typing import Any

import numpy as np
import pytest

from omni_neuron.sim import KernelError, simulate
from omni_neuron.sim.errors import SourceLine
from omni_neuron.sim.execution.launch import launch
from omni_neuron.sim.machine import CHIPS
from omni_neuron.sim.memory.buffer import Allocation
from omni_neuron.sim.memory.placement import peak
from omni_neuron.sim.memory.spaces import MemorySpace
from omni_neuron.sim.nki import isa as nisa
from omni_neuron.sim.nki import language as nl
from omni_neuron.sim.numerics.formats import float32

MEMORY = CHIPS["trn2"].core.memory


def alive(first: int, last: int, size: int, address: tuple[int, int] | None = None) -> Allocation:
    return Allocation(
        "t", MemorySpace.sbuf, (128, size // 4), float32, size, address, SourceLine("k", 1), first, last
    )


def test_live_ranges_that_do_not_meet_share_room() -> None:
    assert peak([alive(0, 3, 4096), alive(4, 8, 4096)], MemorySpace.sbuf, MEMORY).amount == 4096
    assert peak([alive(0, 4, 4096), alive(4, 8, 4096)], MemorySpace.sbuf, MEMORY).amount == 8192


def test_addresses_that_overlap_count_once() -> None:
    placed = [alive(0, 9, 4096, (0, 0)), alive(0, 9, 4096, (0, 2048)), alive(0, 9, 1024)]
    assert peak(placed, MemorySpace.sbuf, MEMORY).amount == 4096 + 2048 + 1024
    in_turn = [alive(0, 3, 4096, (0, 0)), alive(4, 8, 4096, (0, 8192))]
    assert peak(in_turn, MemorySpace.sbuf, MEMORY).amount == 4096


def sbuf_kernel(x: Any, tiles: int, together: bool) -> Any:
    """208 KiB of a partition hold 6 tiles of 32 KiB."""
    out = nl.ndarray((tiles, 128, 8192), nl.float32, buffer=nl.shared_hbm)
    held = []
    for i in range(tiles):
        tile = nl.ndarray((128, 8192), nl.float32, name=f"tile{i}")
        nisa.memset(tile, float(i))
        held.append(tile)
        if not together:
            nisa.dma_copy(out[i], tile)
    if together:
        for i in range(tiles):
            nisa.dma_copy(out[i], held[i])
    return out


def test_sbuf_holds_what_fits_and_refuses_the_rest() -> None:
    simulate(sbuf_kernel, np.zeros(1, np.float32), 6, True)
    simulate(sbuf_kernel, np.zeros(1, np.float32), 7, False)
    with pytest.raises(KernelError, match="7 tensors alive at instruction 7 need 229376 bytes") as caught:
        simulate(sbuf_kernel, np.zeros(1, np.float32), 7, True)
    assert caught.value.rule == "sbuf-capacity"


def psum_kernel(x: Any, banks: int) -> Any:
    tile = nl.ndarray((128, 128), nl.bfloat16)
    nisa.memset(tile, 1.0)
    held = [nl.ndarray((128, 128), nl.float32, buffer=nl.psum) for _ in range(banks)]
    for psum in held:
        nisa.nc_matmul(psum, tile, tile)
    out = nl.ndarray((128, 128), nl.float32, buffer=nl.shared_hbm)
    total = nl.zeros((128, 128), nl.float32)
    for psum in held:
        nisa.tensor_tensor(total, total, psum, nl.add)
    nisa.dma_copy(out, total)
    return out


def test_psum_has_eight_banks() -> None:
    np.testing.assert_array_equal(
        simulate(psum_kernel, np.zeros(1, np.float32), 8), np.full((128, 128), 1024.0)
    )
    with pytest.raises(KernelError, match="need 9 banks, and there are 8") as caught:
        simulate(psum_kernel, np.zeros(1, np.float32), 9)
    assert caught.value.rule == "psum-capacity"


def gathering(x: Any, at: Any) -> Any:
    where, tile = nl.ndarray((4, 1), nl.int32), nl.ndarray((4, 16), nl.float32)
    nisa.dma_copy(where, at)
    nisa.dma_copy(tile, x.vector_select(0, where))
    out = nl.ndarray((4, 16), nl.float32, buffer=nl.shared_hbm)
    nisa.dma_copy(out, tile)
    return out


def test_indices_live_as_long_as_something_is_found_by_them() -> None:
    x, at = np.ones((8, 16), np.float32), np.array([[0], [7], [1], [2]], np.int32)
    (found,) = launch(gathering, (x, at), {}).sbuf
    assert found.amount == 32 + 16 * 4  # 4 bytes of an index take a grain
    assert len(found.alive) == 2
