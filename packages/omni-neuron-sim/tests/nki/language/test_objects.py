from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from omni_neuron.sim import KernelError, simulate
from omni_neuron.sim.nki import isa as nisa
from omni_neuron.sim.nki import language as nl


def test_run_time_loops_hand_registers_to_their_bodies() -> None:
    def kernel(x: Any) -> Any:
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)

        def body(i: Any) -> None:
            row = nl.ndarray((1, 4), x.dtype)
            nisa.dma_copy(row, x.select(0, i))
            nisa.dma_copy(out.ap([[4, 1], [1, 4]], scalar_offset=i), row)

        nl.fori_loop(0, nisa.register_alloc(6), body, step=1)
        return out

    x = np.arange(24, dtype=np.float32).reshape(6, 4)
    np.testing.assert_array_equal(simulate(kernel, x), x)


def test_a_run_time_loop_takes_steps() -> None:
    def kernel() -> Any:
        out = nl.ndarray((1, 4), nl.int32, buffer=nl.shared_hbm)
        seen = nl.zeros((1, 4), nl.int32)
        at = nl.ndarray((1, 1), nl.int32)

        def body(i: Any) -> None:
            nisa.register_store(at, i)
            nisa.tensor_copy(seen[:, 1:4], seen[:, 0:3])
            nisa.tensor_copy(seen[:, 0:1], at)

        nl.fori_loop(1, 9, body, step=3)
        nisa.dma_copy(out, seen)
        return out

    assert simulate(kernel)[0].tolist() == [7, 4, 1, 0]
    assert [i.content for i in nl.dynamic_range(2, 7, 2)] == [2, 4, 6]


def test_a_while_loop_ends_when_its_register_is_zero() -> None:
    def kernel() -> Any:
        counter = nl.ndarray((1, 1), nl.int32)
        nisa.memset(counter, 5)
        runs: list[int] = []

        def body() -> Any:
            runs.append(1)
            nisa.tensor_scalar(counter, counter, nl.subtract, 1.0)
            return nisa.register_alloc(counter)

        nl.while_loop(nisa.register_alloc(1), body)
        return len(runs)

    assert simulate(kernel) == 5


def test_a_condition_that_is_no_register_is_refused() -> None:
    def kernel() -> None:
        nl.while_loop(nisa.register_alloc(1), lambda: True)

    with pytest.raises(KernelError, match="returns the register of the next condition"):
        simulate(kernel)


def test_objects_dataclasses_and_hints_work_inside() -> None:
    @dataclass(frozen=True)
    class Config(nl.NKIObject):
        tile: int = 4
        dtype: str = nl.bfloat16

    def kernel(config: Config) -> Any:
        assert config.dtype == nl.bfloat16
        with nl.no_reorder():
            first = nisa.memset(nl.ndarray((4, config.tile), config.dtype), 0.0)
            second = nisa.memset(nl.ndarray((4, 4), nl.float32), 0.0, name="second").depends_on(first)
        assert second.producers == (first,)
        assert second.name == "second"
        return list(nl.affine_range(3)) + list(nl.static_range(1, 5, 2))

    assert simulate(kernel, Config()) == (0, 1, 2, 1, 3)


def test_a_device_prints(capsys: pytest.CaptureFixture[str]) -> None:
    def kernel() -> None:
        tile = nl.full((1, 2), 3.0, nl.float32)
        nl.device_print("tile is", tile)

    simulate(kernel)
    assert capsys.readouterr().out == "[rank 0 core 0] tile is [[3. 3.]]\n"
