"""Blocks: every entry once, none too large, and the bytes between them left alone where that pays."""

import math
from pathlib import Path

import torch
from hypothesis import given
from hypothesis import strategies as st

from omni_neuron.distributed.loading import read_plan
from omni_neuron.distributed.loading.placement import Piece, Placement, extents, whole_box
from omni_neuron.distributed.loading.read_plan import first_entry, plan_reads, spans, split, strides
from omni_neuron.distributed.loading.stored_tensor import StoredTensor


@st.composite
def boxes(draw):
    shape = tuple(draw(st.lists(st.integers(1, 6), min_size=0, max_size=4)))
    box = []
    for size in shape:
        start = draw(st.integers(0, size - 1))
        box.append(slice(start, draw(st.integers(start + 1, size))))
    return shape, tuple(box)


@given(case=boxes(), limit=st.integers(1, 40), gap=st.integers(0, 20))
def test_a_box_is_cut_into_boxes_that_fit(case, limit, gap):
    shape, box = case
    steps = strides(shape)
    flat = torch.arange(math.prod(shape))
    count = torch.zeros(shape, dtype=torch.int64)
    for part in split(box, steps, limit, gap):
        span = spans(part, steps)[0]
        assert span <= limit
        start = first_entry(part, steps)
        entries = flat[start : start + span].as_strided(extents(part), steps, start)
        assert torch.equal(entries, flat.view(shape)[part])
        apart = entries.flatten().diff()
        assert not len(apart) or apart.max() - 1 <= gap
        count[part] += 1
    expected = torch.zeros_like(count)
    expected[box] = 1
    assert torch.equal(count, expected)


def stored(key, file, shape, offset, kind="F32"):
    return StoredTensor(Path(file), key, kind, shape, offset)


def replicated(tensors):
    whole = [whole_box(tensor.shape) for tensor in tensors]
    rows = sum(tensor.shape[0] for tensor in tensors)
    return Placement((rows, 4), tuple(Piece(i, box, box) for i, box in enumerate(whole)))


def test_parameters_come_in_the_order_of_the_files_and_one_after_the_other():
    late, early = stored("late", "b", (2, 4), 8), stored("early", "a", (2, 4), 100)
    query, key = stored("q", "a", (2, 4), 64), stored("k", "a", (2, 4), 8, "BF16")
    matched = {"late": [late], "fused": [query, key], "early": [early]}
    plans = plan_reads(matched, {name: replicated(tensors) for name, tensors in matched.items()})
    assert [plan.name for plan in plans] == ["fused", "early", "late"]
    assert [block.tensor.key for plan in plans for block in plan.blocks] == ["k", "q", "early", "late"]
    assert [block.position for plan in plans for block in plan.blocks] == [0, 16, 48, 80]
    assert plans[0].dtype == torch.float32


def test_a_column_shard_is_read_in_blocks_and_a_far_one_row_by_row(monkeypatch):
    monkeypatch.setattr(read_plan, "BLOCK_BYTES", 64)
    near, far = stored("near", "a", (8, 4), 8), stored("far", "a", (3, 40_000), 200)

    def columns(tensor, start, stop):
        read = (slice(0, tensor.shape[0]), slice(start, stop))
        write = (slice(0, tensor.shape[0]), slice(0, stop - start))
        return Placement((tensor.shape[0], stop - start), (Piece(0, read, write),))

    plans = plan_reads(
        {"near": [near], "far": [far]}, {"near": columns(near, 1, 3), "far": columns(far, 10, 20)}
    )
    blocks, rows = (plan.blocks for plan in plans)
    assert [(block.offset, block.size) for block in blocks] == [(8 + 4, 56), (8 + 4 + 64, 56)]
    assert not any(block.contiguous for block in blocks)
    assert [(block.offset, block.size) for block in rows] == [
        (200 + 4 * (40_000 * row + 10), 40) for row in range(3)
    ]
    assert all(block.contiguous for block in rows)
    assert sum(block.useful_bytes for block in (*blocks, *rows)) == 8 * 2 * 4 + 3 * 10 * 4


def test_a_block_shows_its_entries_in_the_bytes_that_were_read():
    tensor = stored("w", "a", (3, 4), 0)
    whole = torch.arange(12.0).reshape(3, 4)
    read = (slice(0, 3), slice(1, 3))
    (plan,) = plan_reads({"w": [tensor]}, {"w": Placement((3, 2), (Piece(0, read, read),))})
    (block,) = plan.blocks
    data = whole.flatten().view(torch.uint8)[block.offset : block.offset + block.size]
    buffer = torch.cat([data, torch.zeros(100, dtype=torch.uint8)])
    assert torch.equal(block.entries(buffer), whole[read])


def test_joint_tensors_of_several_dtypes_make_a_value_of_the_widest():
    kinds = ("BF16", "F32", "F16")
    tensors = [stored(kind, "a", (2, 4), 64 * index, kind) for index, kind in enumerate(kinds)]
    (plan,) = plan_reads({"joint": tensors}, {"joint": replicated(tensors)})
    assert plan.dtype == torch.float32
