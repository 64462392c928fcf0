# ruff: noqa: E501 - one case a line
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from omni_neuron.sim import profile
from omni_neuron.sim.cost.constants import DMA_START_S, HOP_S
from omni_neuron.sim.cost.schedule import Slot
from omni_neuron.sim.nki import isa as nisa
from omni_neuron.sim.nki import language as nl

X = np.ones((128, 512), np.float32)


def tile(n: int = 512, dtype: Any = nl.bfloat16, psum: bool = False) -> Any:
    made = nl.ndarray((128, n), dtype, buffer=nl.psum if psum else nl.sbuf)
    nisa.memset(made, 1.0)
    return made


def last(body: Callable[[], Any], target: str = "trn2") -> Slot:
    """The last instruction of a kernel in time."""

    def kernel(x: Any) -> None:
        body()

    return profile(kernel, X, target=target).timelines[0].slots[-1]


F32 = nl.float32
CYCLES: dict[str, tuple[Callable[[], Any], float, float]] = {
    "a matmul streams its moving columns": (lambda: nisa.nc_matmul(tile(512, F32, True), tile(128), tile(512)), 512, 2.4e9),
    "a narrow matmul": (lambda: nisa.nc_matmul(tile(8, F32, True), tile(128), tile(8)), 64, 2.4e9),
    "a matmul in fp32": (lambda: nisa.nc_matmul(tile(512, F32, True), tile(128, F32), tile(512, F32)), 2048, 2.4e9),
    "an activation": (lambda: nisa.activation(tile(), nl.exp, tile()), 512, 1.2e9),
    "a fp32 operation": (lambda: nisa.tensor_scalar(tile(512, F32), tile(512, F32), nl.add, 1.0), 512, 0.96e9),
    "a 16-bit copy": (lambda: nisa.tensor_copy(tile(), tile()), 128, 0.96e9),
    "a 16-bit copy from PSUM": (lambda: nisa.tensor_copy(tile(), tile(psum=True)), 256, 0.96e9),
    "a 16-bit sum": (lambda: nisa.tensor_tensor(tile(), tile(), tile(), nl.add), 256, 0.96e9),
    "a sum of two fp32 streams": (lambda: nisa.tensor_tensor(tile(512, F32), tile(512, F32), tile(512, F32), nl.add), 1024, 0.96e9),
    "a reciprocal": (lambda: nisa.reciprocal(tile(512, F32), tile(512, F32)), 4096, 0.96e9),
    "next to nothing": (lambda: nisa.tensor_scalar(tile(1, F32), tile(1, F32), nl.add, 1.0), 64, 0.96e9),
}  # fmt: skip


@pytest.mark.parametrize("name", CYCLES)
def test_an_instruction_takes_its_cycles(name: str) -> None:
    body, cycles, clock = CYCLES[name]
    assert last(body).busy_s == pytest.approx(cycles / clock)


def test_a_dma_is_slower_in_small_pieces() -> None:
    rate = 368e9

    def copy(run: int) -> Slot:
        """256 KiB in runs of so many bytes."""

        def body() -> None:
            source = nl.zeros((128, 2048 // run, 2, run), nl.uint8, buffer=nl.hbm)
            nisa.dma_copy(nl.ndarray((128, 2048 // run, run), nl.uint8), source[:, :, 0])

        return last(body)

    for run in (64, 512):
        slot = copy(run)
        assert slot.busy_s == pytest.approx(262144 * (1 + 512 / run) / rate)
        assert slot.finish_s - slot.start_s == pytest.approx(DMA_START_S + slot.busy_s)


def test_a_collective_takes_hops_and_its_share_of_the_link() -> None:
    from omni_neuron.sim.nki import collectives as ncc

    def kernel(x: Any) -> None:
        a, b = (nl.zeros((128, 512), nl.float32, buffer=nl.shared_hbm) for _ in range(2))
        ncc.all_reduce([a], [b], ncc.ReplicaGroup(((0, 1, 2, 3),)), nl.add)

    found = profile(kernel, X, ranks=4, target="trn2")
    link = 1.28e12 / 8
    for timeline in found.timelines:
        assert timeline.slots[-1].busy_s == pytest.approx(6 * HOP_S + 1.5 * 128 * 512 * 4 / link)
