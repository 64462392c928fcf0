"""Equal bytes pass, other bytes raise on every rank and name who differs."""

import hashlib

import pytest
import torch

from omni_neuron.distributed.groups import ParallelGroup
from omni_neuron.distributed.process_groups import new_parallel_group
from omni_neuron.distributed.rank_agreement import (
    RankDisagreementError,
    check_rank_agreement,
    rank_digests,
    tensor_digest,
    world_group,
)
from omni_neuron.distributed.simulation import simulate_groups, simulate_ranks
from omni_neuron.distributed.testing import run_ranks, simulated_rank


def test_a_digest_sees_dtype_shape_and_bytes_and_not_the_strides():
    x = torch.arange(6.0).reshape(2, 3)
    expected = hashlib.sha256(b"torch.float32(2, 3)" + bytes(x.untyped_storage()))
    assert tensor_digest(x).hex() == expected.hexdigest()
    assert tensor_digest(x) == tensor_digest(x.t().contiguous().t()) == tensor_digest([x])
    others = [x.reshape(3, 2), x.int(), x.bfloat16(), -x, [x, x], x[:0], torch.where(x == 0, -0.0, x)]
    assert len({tensor_digest(other) for other in [x, *others]}) == len(others) + 1


def verdict(group, values, enabled=True):
    latents = torch.full((2, 2), float(values[group.rank_in_group]))
    try:
        check_rank_agreement("latents", latents, group, enabled=enabled)
    except RankDisagreementError as error:
        return str(error), list(error.digests)
    return None


@pytest.mark.parametrize(
    ("values", "differ", "agree"),
    [([1, 1, 2, 1], [0], [3, 1, 2]), ([5, 1, 2, 2], [3, 1], [0, 2]), ([1, 1, 2, 2], [0, 2], [3, 1])],
)
def test_every_rank_names_those_that_differ_from_most_others(values, differ, agree):
    groups = simulate_groups(4, lambda: new_parallel_group("cp", [(3, 1, 0, 2)]))
    for message, ranks in simulate_ranks(groups, verdict, values):
        assert message.startswith("latents must have the same bytes on all 4 ranks of the cp group, but ")
        assert f"ranks {differ} differ from ranks {agree}:" in message
        assert ranks == [3, 1, 0, 2]
    assert simulate_ranks(groups, verdict, [7, 7, 7, 7]) == [None] * 4
    assert simulate_ranks(groups, verdict, values, False) == [None] * 4


def agree_with_the_world(rank):
    world = world_group()
    same = [torch.ones(3), torch.zeros(2, dtype=torch.bfloat16)]
    check_rank_agreement("weights", same, world)
    digests = rank_digests(torch.tensor(rank % 2), world)
    return world.ranks, verdict(world, [0, 1, 0]), digests


def test_a_real_world_agrees_or_tells_rank_one():
    for ranks, told, digests in run_ranks(3, agree_with_the_world):
        assert ranks == (0, 1, 2)
        assert "ranks [1] differ from ranks [0, 2]" in told[0]
        assert digests[0] == digests[2] != digests[1]


def test_one_rank_agrees_with_itself():
    assert world_group() == ParallelGroup.single("world")
    with simulated_rank(0, 1):
        assert world_group() == ParallelGroup.single("world")
    check_rank_agreement("latents", torch.zeros(1), world_group())
