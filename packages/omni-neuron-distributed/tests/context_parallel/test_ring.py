"""The ring's order, its messages, and its tolerance of blocks without keys."""

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from omni_neuron.distributed.context_parallel import attention_with_lse, ring_attention
from omni_neuron.distributed.groups import ParallelGroup
from omni_neuron.distributed.process_groups import new_parallel_group
from omni_neuron.distributed.simulation import simulate_groups, simulate_ranks

ORDER = (2, 0, 3, 1)


class Calls(TorchDispatchMode):
    """Names of the collectives that a rank issues, and of the attention between them."""

    def __init__(self, log):
        super().__init__()
        self.log = log

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func.namespace == "_c10d_functional":
            self.log.append(func.name().split("::")[1])
        return func(*args, **(kwargs or {}))


def ring(group, length, dtype=torch.float32):
    """One rank's log and result; block ``i`` holds keys equal to ``i``; after ``length`` comes padding."""
    log = []

    def attention(query, key, value, key_mask):
        log.append(int(key.flatten()[0]))
        return attention_with_lse(query, key, value, key_mask)

    block = torch.full((1, 2, 1, 4), float(group.rank_in_group), dtype=dtype)
    query = torch.linspace(-1, 1, 8).reshape(1, 2, 1, 4).to(dtype)
    start = group.rank_in_group * 2
    mask = None if length is None else (torch.arange(start, start + 2) < length)[None]
    with Calls(log):
        result = ring_attention(attention, query, block, block + 1, group, mask)
    return log, result


def test_blocks_come_in_one_order_and_each_step_sends_one_message_ahead():
    groups = simulate_groups(4, lambda: new_parallel_group("ring", [ORDER]))
    for group, (log, result) in zip(groups, simulate_ranks(groups, ring, None), strict=True):
        here = group.rank_in_group
        expected = []
        for step in range(4):
            expected += ["all_to_all_single"] if step < 3 else []
            expected += [(here - step) % 4]
            expected += ["wait_tensor"] if step < 3 else []
        assert log == expected
        again = simulate_ranks(groups, ring, None)[group.ranks[here]][1]
        assert torch.equal(result, again)


def test_blocks_of_padding_have_no_weight_wherever_the_ring_starts():
    groups = simulate_groups(4, lambda: new_parallel_group("ring", [ORDER]))
    for length in range(1, 9):
        _, results = zip(*simulate_ranks(groups, ring, length), strict=True)
        blocks = torch.arange(8)[:length] // 2
        keys = blocks.float().reshape(1, length, 1, 1).expand(1, length, 1, 4)
        query = torch.linspace(-1, 1, 8).reshape(1, 2, 1, 4)
        expected, _ = attention_with_lse(query.double(), keys.double(), keys.double() + 1)
        for result in results:
            assert (result.double() - expected).norm() <= 1e-6 * expected.norm()
    for _, result in simulate_ranks(groups, ring, 0):
        assert torch.equal(result, torch.zeros(1, 2, 1, 4))


def test_a_ring_of_one_is_plain_attention_in_the_querys_dtype():
    log, result = ring(ParallelGroup.single("ring"), None, torch.bfloat16)
    assert log == [0]
    assert result.dtype == torch.bfloat16
    assert torch.equal(result, torch.ones(1, 2, 1, 4, dtype=torch.bfloat16))
