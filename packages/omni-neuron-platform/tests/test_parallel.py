from typing import Any

import pytest
import torch
from vllm_omni.diffusion.data import DiffusionParallelConfig

from omni_neuron.distributed.layout import ParallelLayout
from omni_neuron.platform import parallel
from omni_neuron.platform.parallel import layout_of, tp_reduce_dtype
from omni_neuron.runtime.errors import InputError
from omni_neuron.runtime.mode import Mode, ModeKind


def test_the_layout_has_the_degrees_of_the_engines_configuration() -> None:
    config = DiffusionParallelConfig(tensor_parallel_size=2, ring_degree=4, cfg_parallel_size=2)
    assert layout_of(config) == ParallelLayout(tp=2, cp=4, cfg=2)


def test_context_parallelism_is_the_product_of_both_degrees() -> None:
    config = DiffusionParallelConfig(ulysses_degree=2, ring_degree=3)
    assert layout_of(config).cp == 6


def test_the_context_has_the_live_groups(two_ranks: list[dict[str, Any]]) -> None:
    for rank, found in enumerate(two_ranks):
        assert found["context"]["cfg"] == ((0, 1), rank)
        for single in ("tp", "cp", "text_encoder"):
            assert found["context"][single] == ((rank,), 0)


def test_a_worker_registers_the_partition_of_its_live_groups(two_ranks: list[dict[str, Any]]) -> None:
    for found in two_ranks:
        assert found["registered"] == ((0, 1),)


@pytest.mark.parametrize(("name", "dtype"), [("float32", torch.float32), ("bfloat16", torch.bfloat16)])
def test_the_payload_of_sums_is_the_one_that_the_configuration_names(name: str, dtype: torch.dtype) -> None:
    assert tp_reduce_dtype({"tp_reduce_dtype": name}) == dtype


@pytest.mark.parametrize(
    ("kind", "dtype"), [(ModeKind.CPU, torch.float32), (ModeKind.HARDWARE, torch.bfloat16)]
)
def test_left_out_it_follows_the_machine(
    kind: ModeKind, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parallel, "detect_mode", lambda: Mode(kind, "a test"))
    assert tp_reduce_dtype(None) == dtype
    assert tp_reduce_dtype({"tp_reduce_dtype": None}) == dtype


def test_another_payload_is_refused() -> None:
    with pytest.raises(InputError, match=r"tp_reduce_dtype .* 'float16'.*float32 or bfloat16"):
        tp_reduce_dtype({"tp_reduce_dtype": "float16"})
