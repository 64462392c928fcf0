"""Runs along one dimension: where they are read, where they are written, and what does not fit."""

import pytest
import torch

from omni_neuron.distributed.errors import ShardingError
from omni_neuron.distributed.layout import ParallelLayout
from omni_neuron.distributed.loading.cut import Cut, EqualCut, Run, equal_run, resized
from omni_neuron.distributed.loading.placement import Piece
from omni_neuron.distributed.process_groups import new_parallel_context
from omni_neuron.distributed.testing import simulated_rank


def group(rank, tp):
    with simulated_rank(rank, tp):
        return new_parallel_context(ParallelLayout(tp=tp)).tp


def test_runs_are_written_one_after_the_other():
    cut = Cut(-1, (4, 6), (Run(1, 2, 3), Run(None, 0, 2), Run(0, 3, 1)))
    placement = cut.placement([(5, 4), (5, 6)])
    rows = slice(0, 5)
    assert placement.shape == (5, 6)
    assert placement.pieces == (
        Piece(1, (rows, slice(2, 5)), (rows, slice(0, 3))),
        Piece(0, (rows, slice(3, 4)), (rows, slice(5, 6))),
    )
    assert placement.padding == ((rows, slice(3, 5)),)
    placement.require_complete("weight")
    assert cut.expected_shapes((5, 6)) == [(5, 4), (5, 6)]


def test_sizes_that_differ_from_the_checkpoints_are_refused():
    with pytest.raises(ShardingError, match=r"checkpoint dimension 0=\(5,\) must be \(4,\)"):
        Cut(0, (4,), (Run(0, 0, 4),)).placement([(5, 2)])


def test_equal_cuts_take_their_sizes_from_the_shapes():
    cut = EqualCut(0, group(1, 2), parts=2)
    assert [piece.read[0] for piece in cut.placement([(4, 3), (8, 3)]).pieces] == [slice(2, 4), slice(4, 8)]
    assert cut.expected_shapes((4, 3)) == [(4, 3), (4, 3)]


def test_helpers():
    assert resized((2, 3, 4), -2, 7) == (2, 7, 4)
    assert equal_run(12, group(2, 3), source=1, start=100) == Run(1, 108, 4)
    with pytest.raises(ShardingError, match="heads=5 must be divisible by tp=3"):
        equal_run(5, group(2, 3), 0, field="heads")


def test_a_loader_called_by_itself_keeps_the_tensors_dtype():
    value = EqualCut(0, group(1, 2), parts=1)([torch.arange(4, dtype=torch.float16)])
    assert value.dtype == torch.float16
    assert value.tolist() == [2, 3]
