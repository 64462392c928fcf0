from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import Tensor

from omni_neuron.distributed.testing import run_ranks
from omni_neuron.kernels.attention import flash_attention, flash_operator, ring_attention, ring_operator
from omni_neuron.kernels.attention.ring_operator import _ring_attention, fits_ring_attention
from omni_neuron.kernels.attention.spec import RING_ATTENTION, ring_attention_oracle, ring_case
from omni_neuron.kernels.proof import relative_l2
from omni_neuron.runtime.adapter import get_adapter
from omni_neuron.runtime.errors import InputError

WORLD = ((2, 0), (3, 1))  # two rings, one of them in descending order
LENGTHS = (50, 20, 33, 50)
BAR = RING_ATTENTION.twin_bar(torch.bfloat16)


@pytest.fixture
def interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_NEURON_CPU_MODE", "1")
    monkeypatch.setenv("NKI_SIMULATOR", "1")
    monkeypatch.setenv("NEURON_LOGICAL_NC_CONFIG", "1")


def ring_of(ring: tuple[int, ...], masked: bool) -> Any:
    """Shards of one ring; lengths are those of the whole world."""
    return ring_case((0, 1), 2, 50, 32, lengths=tuple(LENGTHS[r] for r in ring) if masked else None)


def on_a_rank(rank: int, masked: bool) -> Tensor:
    groups = [dist.new_group(sorted(ring)) for ring in WORLD]
    index = next(i for i, ring in enumerate(WORLD) if rank in ring)
    name = groups[index].group_name
    get_adapter().register_replica_groups(name, WORLD)
    query, keys, values, _, scale, _ = ring_of(WORLD[index], masked).ranks[WORLD[index].index(rank)]
    lengths = torch.tensor(LENGTHS, dtype=torch.int32) if masked else None
    return ring_attention(query, keys, values, lengths, scale, name)


def check(masked: bool) -> None:
    found = run_ranks(4, on_a_rank, masked)
    for ring in WORLD:
        exact = ring_attention_oracle(ring_of(ring, masked).ranks)
        for rank, (expected,) in zip(ring, exact, strict=True):
            assert relative_l2(found[rank], expected) <= BAR


@pytest.mark.usefixtures("interpreter")
@pytest.mark.parametrize("masked", [False, True])
def test_two_rings_of_processes_in_the_interpreter(masked: bool) -> None:
    check(masked)


@pytest.mark.parametrize("masked", [False, True])
def test_without_an_interpreter_keys_are_gathered(masked: bool) -> None:
    check(masked)


def on_a_rank_without_room(rank: int) -> Tensor:
    flash_operator.MAX_BLOCKS = 1  # of this process; two ranks have two
    ring_operator._ring_attention = None
    return on_a_rank(rank, False)


@pytest.mark.usefixtures("interpreter")
def test_the_keys_of_all_ranks_must_fit() -> None:
    found = run_ranks(4, on_a_rank_without_room)
    exact = ring_attention_oracle(ring_of(WORLD[0], False).ranks)
    assert relative_l2(found[WORLD[0][0]], exact[0][0]) <= BAR


@pytest.mark.usefixtures("interpreter")
def test_a_rank_alone_computes_what_flash_attention_does() -> None:
    query, keys, values, _, scale, _ = ring_case((0, 1), 2, 50, 32).ranks[0]
    length = torch.tensor([33], dtype=torch.int32)
    for counted in (None, length):
        assert torch.equal(
            ring_attention(query, keys, values, counted, scale),
            flash_attention(query, keys, values, counted, scale),
        )


def test_the_gate() -> None:
    query, keys, values, _, scale, _ = ring_case((0, 1), 2, 50, 32).ranks[0]
    world = torch.tensor([50, 50], dtype=torch.int32)
    assert fits_ring_attention(query, keys, values, None, scale)
    assert fits_ring_attention(query, keys, values, world, scale)
    assert not fits_ring_attention(query, keys[:, :, :9], values[:, :9], None, scale)
    assert not fits_ring_attention(query, keys, values, world.long(), scale)
    assert not fits_ring_attention(query.double(), keys.double(), values.double(), None, scale)


@pytest.mark.usefixtures("interpreter")
def test_the_operator_keeps_the_rules_of_torch() -> None:
    query, keys, values, _, scale, _ = ring_case((0, 1), 2, 50, 32).ranks[0]
    torch.library.opcheck(
        _ring_attention,
        (query, keys, values, None, scale, ""),
        test_utils=("test_schema", "test_faketensor", "test_aot_dispatch_static"),
    )


@pytest.mark.usefixtures("interpreter")
def test_lengths_of_too_few_or_too_many_ranks_are_refused() -> None:
    query, keys, values, _, scale, _ = ring_case((0, 1), 2, 50, 32).ranks[0]
    with pytest.raises(InputError, match="a table of 2 rows must have one for each of 1 ranks"):
        ring_attention(query, keys, values, torch.tensor([50, 50], dtype=torch.int32), scale)
