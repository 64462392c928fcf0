"""A block of every primitive is one graph on two ranks, and serves a second request without another."""

import pytest
import torch
from torch import nn
from torch._dynamo.testing import CompileCounterWithBackend
from torch.nn import functional

from omni_neuron.distributed.cfg_parallel import gather_guidance
from omni_neuron.distributed.collectives import all_reduce
from omni_neuron.distributed.context_parallel import (
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
from omni_neuron.distributed.testing import run_ranks

LENGTH, WIDTH, HEAD = 5, 16, 4
LAYOUTS = {
    "tp2": ParallelLayout(tp=2),
    "cp2": ParallelLayout(cp=2),
    "cfg2": ParallelLayout(cfg=2),
}


def attention(query, key, value, key_mask):
    mask = None if key_mask is None else key_mask[:, None, None, :]
    q, k, v = (x.transpose(1, 2) for x in (query, key, value))
    return functional.scaled_dot_product_attention(q, k, v, attn_mask=mask).transpose(1, 2)


class Block(nn.Module):
    """Embedding, attention with a norm over all heads, and guidance: every collective of a model."""

    def __init__(self, parallel):
        super().__init__()
        self.parallel = parallel
        self.embedding = VocabParallelEmbedding(7, WIDTH, parallel.tp)
        self.to_qkv = FusedColumnParallelLinear(WIDTH, (WIDTH,) * 3, parallel.tp)
        self.to_out = RowParallelLinear(WIDTH, WIDTH, parallel.tp, reduce_dtype=parallel.tp_reduce_dtype)

    def norm(self, x):
        squares = all_reduce(x.float().square().sum(-1, keepdim=True), self.parallel.tp)
        return x * torch.rsqrt(squares / WIDTH + 1e-6)

    def forward(self, ids, key_mask):
        x = split_sequence(self.embedding(ids), self.parallel.cp, 1)
        query, key, value = self.to_qkv(x)
        query, key, value = (t.unflatten(-1, (-1, HEAD)) for t in (self.norm(query), self.norm(key), value))
        x = context_parallel_attention(attention, query, key, value, self.parallel.cp, key_mask)
        x = gather_sequence(self.to_out(x.flatten(2)), self.parallel.cp, 1, LENGTH)
        if self.parallel.cfg.size == 2:
            x = gather_guidance(x, 3.0, self.parallel.cfg)
        return x


def compile_block(rank):
    results = {}
    for name, layout in LAYOUTS.items():
        parallel = new_parallel_context(layout)
        block = Block(parallel)
        generator = torch.Generator().manual_seed(rank)
        for parameter in block.parameters():
            parameter.data.normal_(generator=generator)
        counter = CompileCounterWithBackend("aot_eager")
        compiled = torch.compile(block, backend=counter, fullgraph=True, dynamic=False)
        mask = sequence_key_mask(LENGTH, parallel.cp)
        requests = [torch.tensor([[0, 6, 3, 2, 5]]), torch.tensor([[1, 1, 4, 0, 2]])]
        with torch.no_grad():
            equal = [torch.equal(compiled(ids, mask), block(ids, mask)) for ids in requests]
        collectives = [
            str(node.target)
            for graph in counter.graphs
            for node in graph.graph.nodes
            if "_c10d_functional" in str(node.target) and "wait" not in str(node.target)
        ]
        results[name] = (equal, counter.frame_count, collectives, [graph.code for graph in counter.graphs])
    return results


@pytest.fixture(scope="module")
def compiled_blocks():
    return run_ranks(2, compile_block, timeout_s=120)


@pytest.mark.parametrize("name", LAYOUTS)
def test_one_graph_serves_both_requests_and_matches_eager(compiled_blocks, name):
    reduces = {"tp2": 4, "cp2": 0, "cfg2": 0}[name]
    gathers = {"tp2": 0, "cp2": 3, "cfg2": 1}[name]
    for results in compiled_blocks:
        equal, graphs, collectives, _ = results[name]
        assert equal == [True, True]
        assert graphs == 1
        assert sum("all_reduce" in target for target in collectives) == reduces
        assert sum("all_gather" in target for target in collectives) == gathers


@pytest.mark.parametrize("name", ["tp2", "cfg2"])
def test_the_graph_of_every_rank_is_the_same(compiled_blocks, name):
    first, second = (results[name][3] for results in compiled_blocks)
    assert first == second
