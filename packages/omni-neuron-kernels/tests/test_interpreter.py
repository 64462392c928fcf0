import pytest

from omni_neuron.kernels import interpreter
from omni_neuron.kernels.catalogue import KERNELS
from omni_neuron.kernels.interpreter import interpret, per_rank

SPEC = KERNELS["rms_norm"]
CASE = SPEC.cases()[2]  # one token, in bf16


def test_one_rank_has_its_arguments_and_several_have_them_by_position() -> None:
    assert per_rank([(1, 2)]) == (1, 2)
    first, second = per_rank([(1, 2), (3, 4)])
    assert (list(first.values), list(second.values)) == ([1, 3], [2, 4])


def test_the_kernel_runs_as_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    run = interpreter.simulator().simulate

    def simulate(*arguments: object, **options: object) -> object:
        asked.append(options)
        return run(*arguments, **options)

    class Simulator:
        profile = None

    Simulator.simulate = staticmethod(simulate)  # type: ignore[attr-defined]
    monkeypatch.setattr(interpreter, "simulator", Simulator)
    interpret(SPEC, CASE.ranks, 2, "trn3")
    assert asked == [{"lnc": 2, "ranks": 1, "target": "trn3"}]
