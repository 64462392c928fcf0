import pytest
import torch
from torch import nn

from omni_neuron.runtime.mode import detect_mode
from omni_neuron.runtime.testing import run_on_device


@pytest.mark.hardware
def test_a_function_gets_its_arguments_and_gives_its_result_on_the_host() -> None:
    value = torch.arange(6.0).reshape(2, 3)
    total, product = run_on_device(lambda x, scale: (x.sum(), {"product": x * scale}), value, scale=2)
    assert total.device.type == product["product"].device.type == "cpu"
    assert torch.equal(product["product"], value * 2)
    assert float(total) == 15.0


@pytest.mark.hardware
def test_a_module_runs_where_this_process_computes() -> None:
    layer = nn.Linear(3, 2)
    value = torch.ones(1, 3)
    expected = nn.functional.linear(value, layer.weight.detach().clone(), layer.bias.detach().clone())
    with torch.no_grad():
        torch.testing.assert_close(run_on_device(layer, value), expected, rtol=1e-2, atol=1e-2)
    assert layer.weight.device.type == ("neuron" if detect_mode().is_hardware else "cpu")
