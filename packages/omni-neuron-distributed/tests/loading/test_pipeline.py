"""The three stages together: values by every path, one sentence for what fails, and no thread left behind."""

import os
import threading
import time
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file
from torch import nn

from omni_neuron.distributed.errors import CheckpointError
from omni_neuron.distributed.layout import ParallelLayout
from omni_neuron.distributed.loading import page_cache, pipeline, read_plan
from omni_neuron.distributed.loading.page_cache import Prefetch
from omni_neuron.distributed.loading.placement import volume
from omni_neuron.distributed.loading.sharded_loader import load_sharded
from omni_neuron.distributed.loading.weight_loaders import (
    fused_head_sharded,
    padded,
    padded_sharded,
    replicated,
    scaled_bias,
    set_weight_loader,
    sharded,
    transposed,
)
from omni_neuron.distributed.process_groups import new_parallel_context
from omni_neuron.distributed.testing import simulated_rank

NAME = "model.safetensors"


def tp_group(rank, tp):
    with simulated_rank(rank, tp):
        return new_parallel_context(ParallelLayout(tp=tp)).tp


def model_of(dtype=torch.float32, device="meta", **parameters):
    """A module with parameters: name=(shape, loader)."""
    model = nn.Module()
    for name, (shape, loader) in parameters.items():
        parameter = nn.Parameter(torch.full(shape, -1.0, dtype=dtype, device=device))
        set_weight_loader(parameter, loader)
        model.register_parameter(name, parameter)
    return model


def threads():
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("omni-neuron-")]


def loaders(group, rows, columns):
    """Every kind of loader for whole tensors [rows, columns]: (loader, its checkpoint tensors' number)."""
    size = columns // group.size
    return {
        "replicated": (replicated(), 1),
        "rows": (sharded(0, group), 1),
        "columns": (sharded(1, group), 1),
        "padded": (padded_sharded(0, group, rows), 1),
        "transposed": (transposed(sharded(1, group)), 1),
        "wide": (padded(sharded(1, group), 1, size, size + 3), 1),
        "scaled": (scaled_bias(group), 1),
        "heads": (
            fused_head_sharded(0, group, (rows, rows), 1, orders=(list(range(rows))[::-1], None)),
            2,
        ),
    }


@pytest.mark.parametrize("device", ["cpu", "meta"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    tp=st.integers(1, 3),
    share=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    block=st.sampled_from([8, 40, 1000]),
    gap=st.sampled_from([0, 16, 1000]),
)
def test_every_path_gives_what_the_loader_gives_for_whole_tensors(
    tmp_path, monkeypatch, device, dtype, tp, share, block, gap
):
    monkeypatch.setattr(read_plan, "BLOCK_BYTES", block)
    monkeypatch.setattr(pipeline, "BLOCK_BYTES", block)
    monkeypatch.setattr(read_plan, "GAP_BYTES", gap)
    group = tp_group(tp - 1, tp)
    rows, columns = share[0] * tp, share[1] * tp
    tensors, key_map, parameters, expected = {}, {}, {}, {}
    for name, (loader, count) in loaders(group, rows, columns).items():
        key_map[name] = [f"{name}.{number}" for number in range(count)]
        wholes = [torch.randn(rows, columns) for _ in range(count)]
        tensors |= zip(key_map[name], wholes, strict=True)
        expected[name] = loader(wholes)
        parameters[name] = (expected[name].shape, loader)
    save_file(tensors, tmp_path / NAME)
    model = model_of(dtype, device, **parameters)
    before = dict(model.named_parameters())
    calls = []
    load_sharded(model, tmp_path, key_map=key_map, progress=lambda *call: calls.append(call))
    for name, parameter in model.named_parameters():
        assert torch.equal(parameter, expected[name].to(dtype)), name
        assert (parameter is before[name]) == (device == "cpu")
    shape = (rows, columns)
    placements = [loader.placement([shape] * count) for loader, count in loaders(group, *shape).values()]
    total = sum(4 * volume(piece.read) for placement in placements for piece in placement.pieces)
    done = [call[0] for call in calls]
    assert done == sorted(done)
    assert calls[-1] == (total, total)
    assert not threads()


def test_a_file_that_shrinks_under_the_loader_is_one_sentence(tmp_path, monkeypatch):
    tensors = {f"w{i}": torch.randn(1000) for i in range(4)}
    save_file(tensors, tmp_path / NAME)
    model = model_of(**{name: ((1000,), replicated()) for name in tensors})
    reading = pipeline.Pipeline.read

    def shrink_and_read(self):  # after the headers were checked
        os.truncate(tmp_path / NAME, 9000)
        reading(self)

    monkeypatch.setattr(pipeline.Pipeline, "read", shrink_and_read)
    with pytest.raises(CheckpointError, match=rf"{NAME} ends at byte 9000, inside w2: fetch") as caught:
        load_sharded(model, tmp_path)
    assert "\n" not in str(caught.value)
    assert all(parameter.is_meta for parameter in model.parameters())
    assert not threads()


@pytest.mark.parametrize("stage", ["prefetch", "read", "deliver"])
def test_the_death_of_any_stage_reaches_the_caller(tmp_path, monkeypatch, stage):
    def die(self):
        raise MemoryError(stage)

    save_file({"w": torch.randn(100)}, tmp_path / NAME)
    if stage == "prefetch":  # the others must not be done before it dies
        monkeypatch.setattr(pipeline.Pipeline, "read", lambda self: self._stages.wait_until(lambda: False))
    monkeypatch.setattr(pipeline.Pipeline, stage, die)
    with pytest.raises(MemoryError, match=stage):
        load_sharded(model_of(w=((100,), replicated())), tmp_path)
    assert not threads()


def test_a_progress_that_raises_ends_the_loading(tmp_path):
    def progress(done, total):
        raise KeyboardInterrupt

    save_file({"w": torch.randn(100)}, tmp_path / NAME)
    with pytest.raises(KeyboardInterrupt):
        load_sharded(model_of(w=((100,), replicated())), tmp_path, progress=progress)
    assert not threads()


def test_a_disk_that_does_not_answer_has_a_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(pipeline, "read_into", lambda *args: time.sleep(1))
    save_file({"w": torch.randn(100)}, tmp_path / NAME)
    with pytest.raises(TimeoutError, match=rf"Loading of {tmp_path} must not stand still for 0\.2 s"):
        load_sharded(model_of(w=((100,), replicated())), tmp_path, stall_s=0.2)
    assert not threads()


def test_prefetching_stays_ahead_of_the_reading_but_not_far(tmp_path, monkeypatch):
    asked, read, lead = [0], [0], []
    monkeypatch.setattr(page_cache, "REQUEST_BYTES", 400)
    monkeypatch.setattr(read_plan, "BLOCK_BYTES", 400)
    monkeypatch.setattr(pipeline, "BLOCK_BYTES", 400)
    reading = pipeline.read_into

    def slow_read(descriptor, tensor, offset, memory):
        time.sleep(0.005)
        reading(descriptor, tensor, offset, memory)
        read[0] += memory.nbytes

    def ask(descriptor, part):
        asked[0] += part.size
        lead.append(asked[0] - read[0])

    monkeypatch.setattr(pipeline, "read_into", slow_read)
    monkeypatch.setattr(pipeline, "will_need", ask)
    save_file({f"w{i}": torch.randn(500) for i in range(10)}, tmp_path / NAME)
    model = model_of(**{f"w{i}": ((500,), replicated()) for i in range(10)})
    load_sharded(model, tmp_path, prefetch=Prefetch(ahead_bytes=2000))
    # One block may be under way that the reading has announced and not yet counted.
    assert max(lead) <= 2000 + 400 + 400
    assert max(lead) >= 1200
    assert read == [20_000]


def test_ranks_that_share_the_files_wait_for_nobody(tmp_path):
    tensors = {"a": torch.randn(50), "b": torch.randn(50)}
    save_file(tensors, tmp_path / NAME)
    model = model_of(a=((50,), replicated()), b=((50,), replicated()))
    load_sharded(model, tmp_path, prefetch=Prefetch(rank=3, ranks=4))
    assert all(torch.equal(model.get_parameter(name), value) for name, value in tensors.items())


def test_a_module_without_parameters_loads_nothing(tmp_path):
    save_file({"w": torch.zeros(1)}, tmp_path / NAME)
    assert load_sharded(nn.Module(), Path(tmp_path), ignore=("w",)) == set()
