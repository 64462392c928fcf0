from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from omni_neuron.kernels import operator
from omni_neuron.kernels.operator import kernel_operator, launch, load

SOURCE = "omni_neuron.kernels.rms_norm.kernel:rms_norm_kernel"


@pytest.fixture
def launches(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """(kernel, cores, arguments) of what would be launched."""
    found: list[Any] = []

    class Launcher:
        def __init__(self, kernel: Any) -> None:
            self.kernel = kernel

        def __getitem__(self, lnc: int) -> Any:
            return lambda *arguments: found.append((self.kernel, lnc, arguments))

    monkeypatch.setattr(operator, "get_adapter", lambda: SimpleNamespace(wrap_nki=Launcher))
    return found


@pytest.mark.parametrize(("given", "lnc"), [("1", 1), ("2", 2), (None, 2)])
def test_a_launch_has_the_cores_of_one_logical_core(
    monkeypatch: pytest.MonkeyPatch, launches: list[Any], given: str | None, lnc: int
) -> None:
    monkeypatch.delenv("NEURON_LOGICAL_NC_CONFIG", raising=False)
    if given is not None:
        monkeypatch.setenv("NEURON_LOGICAL_NC_CONFIG", given)
    launch(SOURCE, 1.5, None)
    assert launches == [(load(SOURCE), lnc, (1.5, None))]


def test_a_view_reaches_a_kernel_as_its_shape_says(launches: list[Any]) -> None:
    x = torch.arange(6.0).view(2, 3)
    launch(SOURCE, x, x.T, x[:, 1])
    plain, turned, column = launches[0][2]
    assert plain is x
    assert torch.equal(turned, x.T)
    assert torch.equal(column, x[:, 1])
    assert turned.is_contiguous()
    assert column.is_contiguous()


def test_an_operator_is_named_after_its_function() -> None:
    def fake(x: Tensor) -> Tensor:
        return x.new_empty(x.shape)

    @kernel_operator(fake)
    def _twice_of_a_test(x: Tensor) -> Tensor:
        return 2 * x

    x = torch.ones(3)
    assert torch.equal(torch.ops.omni_neuron.twice_of_a_test(x), 2 * x)
    assert _twice_of_a_test(x.to("meta")).shape == (3,)
