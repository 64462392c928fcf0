from types import SimpleNamespace
from typing import Any

import pytest
import torch

from omni_neuron.distributed.groups import ParallelGroup
from omni_neuron.platform.cfg_parallel import NeuronCFGParallelMixin

CASES = [
    "plain",
    "several outputs",
    "tuple of one",
    "no guidance",
    "normalised",
    "sliced",
    "compiled",
    "bfloat16",
    "own combination",
    "own combination with context",
]


def _parts(prediction: Any) -> tuple[torch.Tensor, ...]:
    return prediction if isinstance(prediction, tuple) else (prediction,)


@pytest.mark.parametrize("case", CASES)
def test_over_two_ranks_every_rank_gets_what_the_stock_mixin_gives(
    case: str, two_ranks: list[dict[str, Any]]
) -> None:
    for rank in two_ranks:
        ours, stock, _ = rank["outcomes"][case]
        assert type(ours) is type(stock)
        for mine, theirs in zip(_parts(ours), _parts(stock), strict=True):
            torch.testing.assert_close(mine, theirs, rtol=0, atol=0)


def test_the_two_branches_are_predicted_on_two_ranks(two_ranks: list[dict[str, Any]]) -> None:
    first, second = (rank["outcomes"]["plain"] for rank in two_ranks)
    assert (first[2], second[2]) == (["positive"], ["negative"])
    assert torch.equal(first[0], second[0])


class OneRank(NeuronCFGParallelMixin):
    def __init__(self) -> None:
        self.cfg_group = ParallelGroup.single("cfg")

    def predict_noise(self, value: float) -> torch.Tensor:
        return torch.full((2,), value)


def test_on_one_rank_both_branches_are_predicted_in_turn() -> None:
    guided = OneRank().predict_noise_maybe_with_cfg(
        True, 3.0, {"value": 2.0}, {"value": 1.0}, cfg_normalize=False
    )
    assert guided.tolist() == [4.0, 4.0]


def test_an_absent_context_is_not_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mixin for pipeline parallelism does not know the argument."""
    seen = SimpleNamespace(options={})

    def stock(self: Any, *args: Any, **options: Any) -> str:
        seen.options = options
        return "stock"

    monkeypatch.setattr(NeuronCFGParallelMixin.__mro__[1], "predict_noise_maybe_with_cfg", stock)
    assert OneRank().predict_noise_maybe_with_cfg(False, 1.0, {}, None) == "stock"
    assert "kwargs" not in seen.options
    OneRank().predict_noise_maybe_with_cfg(False, 1.0, {}, None, kwargs={"a": 1})
    assert seen.options["kwargs"] == {"a": 1}
