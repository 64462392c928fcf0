"""What each rank asks for: together everything, alone its own, and never far ahead."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omni_neuron.distributed.errors import LayoutError
from omni_neuron.distributed.loading.page_cache import (
    REQUEST_BYTES,
    FileRange,
    Prefetch,
    ranges_to_prefetch,
    requests,
    will_need,
)
from omni_neuron.distributed.loading.placement import Piece, Placement
from omni_neuron.distributed.loading.read_plan import plan_reads
from omni_neuron.distributed.loading.stored_tensor import StoredTensor
from omni_neuron.distributed.testing import simulated_rank


def plans(files):
    """One tensor [4, 8] per file, of which rows 1 and 2 are kept."""
    box = (slice(1, 3), slice(0, 8))
    placement = Placement((2, 8), (Piece(0, box, (slice(0, 2), slice(0, 8))),))
    matched = {f"w{i}": [StoredTensor(Path(f"f{i}"), f"w{i}", "F32", (4, 8), 100)] for i in range(files)}
    return plan_reads(matched, dict.fromkeys(matched, placement))


def test_a_single_rank_asks_only_for_what_it_keeps():
    found = ranges_to_prefetch(plans(2), Prefetch())
    assert found == [
        FileRange(Path("f0"), 100 + 32, 64, 32),
        FileRange(Path("f1"), 100 + 32, 64, 128 + 32),
    ]


@given(files=st.integers(1, 9), ranks=st.integers(2, 12))
def test_the_ranks_of_a_host_share_the_files(files, ranks):
    asked = [ranges_to_prefetch(plans(files), Prefetch(rank, ranks)) for rank in range(ranks)]
    for rank, found in enumerate(asked):
        assert [int(part.file.name[1:]) for part in found] == list(range(rank, files, ranks))
    everything = sorted((part for found in asked for part in found), key=lambda part: part.position)
    assert everything == [FileRange(Path(f"f{i}"), 100, 128, 128 * i) for i in range(files)]


@given(sizes=st.lists(st.integers(0, 3 * REQUEST_BYTES), max_size=4))
def test_requests_cover_the_ranges_in_pieces_the_kernel_honours(sizes):
    ranges = [FileRange(Path("f"), 10_000_000 * i, size, 50_000_000 * i) for i, size in enumerate(sizes)]
    for whole in ranges:
        parts = list(requests([whole]))
        assert sum(part.size for part in parts) == whole.size
        assert all(0 < part.size <= REQUEST_BYTES for part in parts)
        at = whole.offset
        for part in parts:
            assert part.offset == at
            assert part.position - whole.position == part.offset - whole.offset
            at += part.size


def test_the_process_group_says_who_shares():
    assert Prefetch.of_this_process() == Prefetch(0, 1)
    with simulated_rank(5, 8):
        assert Prefetch.of_this_process() == Prefetch(5, 8)


def test_advice_that_a_filesystem_refuses_is_no_error():
    read, write = os.pipe()
    try:
        will_need(read, FileRange(Path("pipe"), 0, 10, 0))
    finally:
        os.close(read)
        os.close(write)


@pytest.mark.parametrize(("fields", "message"), [((2, 2), "rank=2"), ((0, 1, -1), "ahead_bytes=-1")])
def test_values_that_make_no_sense_are_refused(fields, message):
    with pytest.raises(LayoutError, match=f"Prefetch {message} must"):
        Prefetch(*fields)
