"""Boxes, and the proof that a placement writes every entry once."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from omni_neuron.distributed.errors import ShardingError
from omni_neuron.distributed.loading.placement import (
    Piece,
    Placement,
    along,
    extents,
    shifted,
    volume,
    whole_box,
)


def pieces(*boxes):
    return tuple(Piece(0, box, box) for box in boxes)


def test_boxes():
    box = along(whole_box((4, 5, 6)), 1, 2, 3)
    assert box == (slice(0, 4), slice(2, 5), slice(0, 6))
    assert extents(box) == (4, 3, 6)
    assert volume(box) == 72
    assert volume(()) == 1
    part = (slice(1, 2), slice(3, 4), slice(0, 6))
    target = (slice(10, 14), slice(0, 3), slice(0, 6))
    assert shifted(part, box, target) == (slice(11, 12), slice(1, 2), slice(0, 6))


@given(cut=st.integers(0, 6), pad=st.integers(0, 6))
def test_a_placement_is_complete_exactly_when_it_covers_the_parameter_once(cut, pad):
    whole = whole_box((2, 6))
    left, zeros = along(whole, 1, 0, cut), along(whole, 1, pad, 6 - pad)
    placement = Placement((2, 6), pieces(left), (zeros,))
    if cut == pad:
        placement.require_complete("weight")
    else:
        with pytest.raises(
            ShardingError, match=r"loader of weight writes .* each of the parameter's 12 once"
        ):
            placement.require_complete("weight")


@pytest.mark.parametrize("starts", [(0, 1), (1, 0)])
def test_overlaps_that_hide_a_hole_are_seen(starts):
    whole = whole_box((4,))
    placement = Placement((4,), pieces(*(along(whole, 0, start, 2) for start in starts)))
    with pytest.raises(ShardingError, match="writes 4 entries with overlaps"):
        placement.require_complete("weight")


def test_parts_are_divided_in_float32_and_rounded_once():
    value = torch.tensor([1.0, 3.0]).bfloat16()
    placement = Placement((2,), pieces(whole_box((2,))), divisor=3)
    assert placement.dtype(torch.bfloat16) == torch.float32
    target = torch.empty(2, dtype=torch.bfloat16)
    placement.put(target, whole_box((2,)), value)
    assert torch.equal(target, (value.float() / 3).bfloat16())


def test_a_transposed_placement_writes_into_the_transpose():
    target = torch.ones(3, 2)
    placement = Placement((3, 2), (), ((slice(1, 2), slice(0, 3)),), transposed=True)
    placement.zero_padding(target)
    assert target.tolist() == [[1, 0]] * 3
    placement.put(target, (slice(0, 1), slice(1, 3)), torch.tensor([[7.0, 8.0]]))
    assert target.tolist() == [[1, 0], [7, 0], [8, 0]]
