"""Bugs that leave rank 0 or most pixels right: each is planted, and the guard against it must go off."""

from functools import cache

import pytest
import torch
from torch.nn import functional

from omni_neuron.distributed import collectives, tensor_parallel
from omni_neuron.distributed.context_parallel import attention as cp_attention
from omni_neuron.distributed.context_parallel import attention_with_lse, sequence, ulysses
from omni_neuron.distributed.layout import ParallelLayout
from omni_neuron.distributed.loading import weight_loaders
from omni_neuron.distributed.process_groups import new_parallel_context, new_parallel_group
from omni_neuron.distributed.simulation import simulate_groups, simulate_ranks

LENGTH, HEADS, WIDTH = 13, 4, 8
ORDER = (2, 0, 3, 1)


def random(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@cache  # made before the ranks' threads start
def tp_groups():
    return simulate_groups(2, lambda: new_parallel_group("tp", [(1, 0)]))


def load(parameter, *wholes):
    loader = weight_loaders.get_weight_loader(parameter)
    parameter.data = loader(wholes)


def gathers_follow_the_list():
    groups = simulate_groups(4, lambda: new_parallel_group("cp", [ORDER]))
    mine = simulate_ranks(
        groups, lambda group: collectives.all_gather(torch.tensor([group.rank_in_group]), group, 0)
    )
    assert all(gathered.tolist() == [0, 1, 2, 3] for gathered in mine)


def rows_are_those_of_one_rank(ring):
    layout = ParallelLayout(cp=4, ulysses=2, placement=ORDER)
    contexts = simulate_groups(4, lambda: new_parallel_context(layout))
    inputs = [random(1, LENGTH, HEADS, WIDTH, seed=seed) for seed in range(3)]

    def attend(parallel):
        shares = [sequence.split_sequence(x, parallel.cp, 1) for x in inputs]
        mask = sequence.sequence_key_mask(LENGTH, parallel.cp)
        local = cp_attention.context_parallel_attention(
            lambda *args: attention_with_lse(*args)[0], *shares, parallel, mask, ring=ring
        )
        return sequence.gather_sequence(local, parallel.cp, 1, LENGTH)

    q, k, v = (x.double().transpose(1, 2) for x in inputs)
    expected = functional.scaled_dot_product_attention(q, k, v).transpose(1, 2)
    for result in simulate_ranks(contexts, attend):
        assert (result.double() - expected).norm() <= 1e-6 * expected.norm()


def gathered_rows():
    rows_are_those_of_one_rank(None)


def ring_rows():
    rows_are_those_of_one_rank(attention_with_lse)


def scaled_biases_are_added_once():
    x, weight, bias = random(3, WIDTH), random(5, WIDTH, seed=1), random(5, seed=2)
    groups = tp_groups()
    partial = []
    for group in groups:
        shard = slice(group.rank_in_group * 4, group.rank_in_group * 4 + 4)
        share = weight_loaders.scaled_bias(group)([bias])
        partial.append(functional.linear(x[:, shard], weight[:, shard], share))
    torch.testing.assert_close(sum(partial), functional.linear(x, weight, bias))


def row_layers_add_their_bias_once():
    x, weight, bias = random(3, WIDTH), random(5, WIDTH, seed=1), random(5, seed=2)

    def forward(group):
        layer = tensor_parallel.RowParallelLinear(WIDTH, 5, group)
        load(layer.weight, weight)
        load(layer.bias, bias)
        return layer(x.chunk(2, 1)[group.rank_in_group])

    for result in simulate_ranks(tp_groups(), forward):
        torch.testing.assert_close(result, functional.linear(x, weight, bias))


def fused_parts_are_query_key_and_value():
    x = random(3, WIDTH)
    wholes = [random(6, WIDTH, seed=seed) for seed in range(1, 4)]
    for group in tp_groups():
        layer = tensor_parallel.FusedColumnParallelLinear(WIDTH, (6, 6, 6), group, bias=False)
        load(layer.weight, *wholes)
        for part, whole in zip(layer(x), wholes, strict=True):
            shard = whole.chunk(2)[group.rank_in_group]
            torch.testing.assert_close(part, functional.linear(x, shard))


def plant(owner, name, bug):
    return lambda patch: patch.setattr(owner, name, bug)


def key_query_value(dim, group, sizes=None):
    right = weight_loaders.fused_sharded(dim, group, sizes)
    return lambda slices: right([slices[1], slices[0], slices[2]])


def heads_reversed(x, group, split_dim, join_dim):
    return collectives.all_to_all(x.flip(2) if split_dim == 2 else x, group, split_dim, join_dim)


def mask_of_first_block(mask, share, ulysses_group, over, *, travels):
    return mask[:, : share * ulysses_group.size] if travels else mask


def one_key_too_many(length, group, device=None):
    return torch.arange(sequence.padded_length(length, group)) <= length


BUGS = {
    "gather order: sorted": (
        plant(collectives, "_to_list", lambda parts, group: parts),
        gathers_follow_the_list,
    ),
    "gather order: sorted, seen in attention": (
        plant(collectives, "_to_list", lambda parts, group: parts),
        gathered_rows,
    ),
    "gather order: parts sent by rank": (
        plant(collectives, "_to_live", lambda parts, group: parts),
        ring_rows,
    ),
    "pad mask: none": (plant(sequence, "sequence_key_mask", lambda *args: None), gathered_rows),
    "pad mask: one key too many": (plant(sequence, "sequence_key_mask", one_key_too_many), gathered_rows),
    "pad mask: of another block": (plant(cp_attention, "_mask_for", mask_of_first_block), ring_rows),
    "bias scale: whole on every rank": (
        plant(weight_loaders, "scaled_bias", lambda group: weight_loaders.replicated()),
        scaled_biases_are_added_once,
    ),
    "bias scale: divided and added once": (
        plant(tensor_parallel, "replicated", lambda: weight_loaders.scaled_bias(tp_groups()[0])),
        row_layers_add_their_bias_once,
    ),
    "QKV permutation: key first in the file": (
        plant(tensor_parallel, "fused_sharded", key_query_value),
        fused_parts_are_query_key_and_value,
    ),
    "QKV permutation: heads reversed on their way": (plant(ulysses, "all_to_all", heads_reversed), ring_rows),
}


@pytest.mark.parametrize("name", BUGS)
def test_the_guard_is_silent_without_the_bug_and_goes_off_with_it(name, monkeypatch):
    planted, guard = BUGS[name]
    guard()
    planted(monkeypatch)
    with pytest.raises(AssertionError):
        guard()
