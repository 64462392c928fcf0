"""Values on their way to a device: whole, cast on the host, and few at a time."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from omni_neuron.distributed.loading import pipeline
from omni_neuron.distributed.loading.placement import Placement
from omni_neuron.distributed.loading.read_plan import ParameterPlan, plan_reads
from omni_neuron.distributed.loading.sharded_loader import load_sharded
from omni_neuron.distributed.loading.stored_tensor import StoredTensor
from omni_neuron.distributed.loading.target import Target
from omni_neuron.distributed.loading.weight_loaders import replicated

CPU = torch.device("cpu")
# The one device beside the host that every machine has; it takes the copy and keeps no values.
OTHER = torch.device("meta")


def plan(shape, kind="F32"):
    tensor = StoredTensor(Path("f"), "w", kind, shape, 0)
    (found,) = plan_reads({"w": [tensor]}, {"w": replicated().placement([shape])})
    return found


def test_the_host_is_filled_in_place_and_bytes_go_straight_there():
    parameter = nn.Parameter(torch.zeros(4, 3))
    target = Target(parameter, plan((4, 3)), torch.float32, CPU)
    target.allocate()
    (block,) = target.plan.blocks
    assert target.staged_bytes == 0
    assert target.memory_of(block).data_ptr() == parameter.data_ptr()
    assert target.memory_of(block).shape == (12,)
    assert target.result() is parameter


@pytest.mark.parametrize(
    ("dtype", "parameter"), [(torch.bfloat16, torch.zeros(4, 3)), (torch.float32, torch.zeros(3, 4).t())]
)
def test_bytes_that_need_a_cast_or_another_order_are_staged(dtype, parameter):
    target = Target(nn.Parameter(parameter.to(dtype)), plan((4, 3)), dtype, CPU)
    target.allocate()
    (block,) = target.plan.blocks
    assert target.memory_of(block) is None
    values = torch.arange(12.0)
    target.put(block, values.view(torch.uint8))
    assert torch.equal(target.result().data, values.view(4, 3).to(dtype))


def test_another_device_gets_a_whole_tensor_of_the_final_dtype():
    target = Target(nn.Parameter(torch.empty(4, 3, device=OTHER)), plan((4, 3)), torch.bfloat16, OTHER)
    assert target.staged_bytes == 4 * 3 * 2
    target.allocate()
    assert target.host.device == CPU
    assert target.host.dtype == torch.bfloat16
    assert target.host.is_contiguous()
    target.written = 12
    target.finish()
    result = target.result()
    assert (result.device, result.dtype, result.shape) == (OTHER, torch.bfloat16, (4, 3))


@pytest.mark.parametrize("written", [11, 13])
def test_a_value_that_was_not_written_once_is_never_handed_out(written):
    target = Target(nn.Parameter(torch.zeros(4, 3)), plan((4, 3)), torch.float32, CPU)
    target.written = written
    with pytest.raises(RuntimeError, match=f"w was filled with {written} entries, which must be 12"):
        target.finish()


def test_nothing_is_filled_before_it_is_allocated():
    empty = ParameterPlan("w", Placement((2,), ()), torch.float32, ())
    with pytest.raises(RuntimeError, match="w must be allocated"):
        Target(nn.Parameter(torch.zeros(2)), empty, torch.float32, CPU).host  # noqa: B018


def test_few_values_are_on_their_way_to_a_device_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr(pipeline, "HOST_BYTES", 1000)
    on_the_way, most = set(), [0]
    allocate, finish = Target.allocate, Target.finish

    def watched_allocate(self):
        allocate(self)
        on_the_way.add(self)
        most[0] = max(most[0], sum(target.staged_bytes for target in on_the_way))

    def watched_finish(self):
        finish(self)
        on_the_way.remove(self)

    monkeypatch.setattr(Target, "allocate", watched_allocate)
    monkeypatch.setattr(Target, "finish", watched_finish)
    sizes = {"w0": 100, "w1": 100, "w2": 700, "w3": 100, "w4": 100, "w5": 100}
    save_file({name: torch.randn(size) for name, size in sizes.items()}, tmp_path / "model.safetensors")
    model = nn.Module()
    for name, size in sizes.items():
        model.register_parameter(name, nn.Parameter(torch.empty(size, device=OTHER)))
    load_sharded(model, tmp_path, device=OTHER)
    assert not on_the_way
    assert most[0] == 2800  # the one above the limit travels alone
