"""A block of every primitive is one graph on two ranks, and serves a second request without another."""

import re

import pytest
import torch
from torch import nn
from torch._dynamo.testing import CompileCounterWithBackend
from torch.nn import functional

from omni_neuron.distributed.cfg_parallel import gather_guidance
from omni_neuron.distributed.collectives import all_reduce
from omni_neuron.distributed.context_parallel import (
    attention_with_lse,
    context_parallel_attention,
    gather_sequence,
    sequence_key_mask,
    split_sequence,
)
from omni_neuron.distributed.layout import ParallelLayout
from omni_neuron.distributed.process_groups import new_parallel_context
from omni_neuron.distributed.tensor_parallel import (
    FusedColumnParallelLinear,
    RowParallelLinear,
    VocabParallelEmbedding,
)
from omni_neuron.distributed.testing import run_ranks, simulated_rank

LENGTH, WIDTH, HEAD = 5, 16, 4
LAYOUTS = {
    "tp2": (ParallelLayout(tp=2), None),
    "gather2": (ParallelLayout(cp=2), None),
    "ring2": (ParallelLayout(cp=2), attention_with_lse),
    "ulysses2": (ParallelLayout(cp=2, ulysses=2), None),
    "cfg2": (ParallelLayout(cfg=2), None),
}
# Of one block: K and V gathered, or sent around together with the mask; heads exchanged and given back.
# A block over cp gathers its result at the end.
COLLECTIVES = {
    "tp2": {"all_reduce": 4},
    "gather2": {"all_gather_into_tensor": 3},
    "ring2": {"all_to_all_single": 2, "all_gather_into_tensor": 1},
    "ulysses2": {"all_to_all_single": 2, "all_gather_into_tensor": 1},
    "cfg2": {"all_gather_into_tensor": 2},
}


def attention(query, key, value, key_mask):
    mask = None if key_mask is None else key_mask[:, None, None, :]
    q, k, v = (x.transpose(1, 2) for x in (query, key, value))
    return functional.scaled_dot_product_attention(q, k, v, attn_mask=mask).transpose(1, 2)


class Block(nn.Module):
    """Embedding, attention with a norm over all heads, and guidance: every collective of a model."""

    def __init__(self, parallel, ring):
        super().__init__()
        self.parallel = parallel
        self.ring = ring
        self.embedding = VocabParallelEmbedding(7, WIDTH, parallel.tp)
        self.to_qkv = FusedColumnParallelLinear(WIDTH, (WIDTH,) * 3, parallel.tp)
        self.to_out = RowParallelLinear(WIDTH, WIDTH, parallel.tp, reduce_dtype=parallel.tp_reduce_dtype)

    def norm(self, x):
        squares = all_reduce(x.float().square().sum(-1, keepdim=True), self.parallel.tp)
        return x * torch.rsqrt(squares / WIDTH + 1e-6)

    def forward(self, ids, key_mask, scale):
        x = split_sequence(self.embedding(ids), self.parallel.cp, 1)
        query, key, value = self.to_qkv(x)
        query, key, value = (t.unflatten(-1, (-1, HEAD)) for t in (self.norm(query), self.norm(key), value))
        x = context_parallel_attention(attention, query, key, value, self.parallel, key_mask, ring=self.ring)
        x = gather_sequence(self.to_out(x.flatten(2)), self.parallel.cp, 1, LENGTH)
        if self.parallel.cfg.size == 2:
            x, _ = gather_guidance((x, x[:, :2]), scale, self.parallel.cfg)
        return x


def collectives_of(graphs):
    targets = [str(node.target) for graph in graphs for node in graph.graph.nodes]
    names = [target.split(".")[1] for target in targets if target.startswith("_c10d_functional")]
    return {name: names.count(name) for name in names if name != "wait_tensor"}


def compile_block(rank):
    results = {}
    for name, (layout, ring) in LAYOUTS.items():
        parallel = new_parallel_context(layout)
        block = Block(parallel, ring)
        generator = torch.Generator().manual_seed(rank)
        for parameter in block.parameters():
            parameter.data.normal_(generator=generator)
        counter = CompileCounterWithBackend("aot_eager")
        compiled = torch.compile(block, backend=counter, fullgraph=True, dynamic=False)
        mask = sequence_key_mask(LENGTH, parallel.cp)
        requests = [([[0, 6, 3, 2, 5]], 3.0), ([[1, 1, 4, 0, 2]], 4.5)]
        with torch.no_grad():
            inputs = [(torch.tensor(ids), mask, torch.tensor(scale)) for ids, scale in requests]
            equal = [torch.equal(compiled(*each), block(*each)) for each in inputs]
        codes = [graph.code for graph in counter.graphs]
        results[name] = (equal, counter.frame_count, collectives_of(counter.graphs), codes)
    return results


@pytest.fixture(scope="module")
def compiled_blocks():
    return run_ranks(2, compile_block, timeout_s=120)


@pytest.mark.parametrize("name", LAYOUTS)
def test_one_graph_serves_both_requests_and_matches_eager(compiled_blocks, name):
    for equal, graphs, collectives, _ in (results[name] for results in compiled_blocks):
        assert equal == [True, True]
        assert graphs == 1
        assert collectives == COLLECTIVES[name]


@pytest.mark.parametrize("name", ["tp2", "cfg2"])
def test_the_graph_of_every_rank_is_the_same(compiled_blocks, name):
    first, second = (results[name][3] for results in compiled_blocks)
    assert first == second


@pytest.mark.parametrize(
    ("layout", "ring", "expected"),
    [
        (ParallelLayout(cp=4), None, {"all_gather_into_tensor": 3}),
        (ParallelLayout(cp=4), attention_with_lse, {"all_to_all_single": 6}),
        (ParallelLayout(cp=4, ulysses=4), None, {"all_gather_into_tensor": 1, "all_to_all_single": 2}),
        (ParallelLayout(cp=4, ulysses=2), None, {"all_gather_into_tensor": 4, "all_to_all_single": 2}),
        (
            ParallelLayout(cp=4, ulysses=2),
            attention_with_lse,
            {"all_gather_into_tensor": 1, "all_to_all_single": 4},
        ),
    ],
    ids=["gather4", "ring4", "ulysses4", "ulysses2-gather2", "ulysses2-ring2"],
)
def test_attention_with_a_shared_mask_differs_between_ranks_by_the_ring_neighbours_only(
    layout, ring, expected
):
    """With the mask as this rank's share, what depends on the rank is an argument or a split."""
    codes = []
    for rank in (0, 3):
        with simulated_rank(rank, 4):
            parallel = new_parallel_context(layout)
            counter = CompileCounterWithBackend("aot_eager")

            def attend(query, key, value, share, parallel=parallel):
                return context_parallel_attention(attention, query, key, value, parallel, share, ring=ring)

            torch._dynamo.reset()
            compiled = torch.compile(attend, backend=counter, fullgraph=True, dynamic=False)
            tokens = [torch.ones(1, 3, 4, HEAD) for _ in range(3)]
            for _ in range(2):
                compiled(*tokens, torch.ones(1, 3, dtype=torch.bool))
            assert counter.frame_count == 1
            assert collectives_of(counter.graphs) == expected
            codes.append(re.sub(r"\[(0|1)(, (0|1))+\]", "[splits]", counter.graphs[0].code))
            codes[-1] = re.sub(r"'\d+'", "'group'", codes[-1])
    assert codes[0] == codes[1]
