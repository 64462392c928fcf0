"""The transformer over gloo ranks: equal to one rank in every layout, and one graph for all of them."""

import statistics

import pytest
import torch
from safetensors.torch import load_file
from torch._dynamo.testing import CompileCounterWithBackend

from omni_neuron.distributed.groups import ParallelContext
from omni_neuron.distributed.layout import ParallelLayout
from omni_neuron.distributed.loading.sharded_loader import load_sharded
from omni_neuron.distributed.process_groups import new_parallel_context
from omni_neuron.distributed.testing import run_ranks
from omni_neuron.wan22.models.config import WanConfig
from omni_neuron.wan22.models.transformer import WanTransformer3DModel

CASES = ["t2v", "batch", "per_token", "first_last"]
LAYOUTS = {"tp2": ParallelLayout(tp=2), "cp2": ParallelLayout(cp=2), "tp2 x cp2": ParallelLayout(tp=2, cp=2)}
COMPILED = [("tp2", "t2v"), ("cp2", "per_token")]
KEYS = ("latents", "timestep", "text", "image")


def load(folder, parallel, dtype=torch.float32):
    model = WanTransformer3DModel(WanConfig.from_json_file(folder / "config.json"), parallel, dtype=dtype)
    load_sharded(model, folder, **model.load_options)
    return model


def arguments(inputs, seed):
    return [inputs[f"{seed}.{key}"] for key in KEYS if f"{seed}.{key}" in inputs]


def run_all(root, parallel):
    """Results by (case, dtype, seed)."""
    results = {}
    with torch.no_grad():
        for case in CASES:
            inputs = load_file(root / case / "inputs.safetensors")
            for dtype, seeds in ((torch.float32, range(2)), (torch.bfloat16, range(8))):
                model = load(root / case, parallel, dtype)
                for seed in seeds:
                    results[case, dtype, seed] = model(*arguments(inputs, seed)).float()
    return results


def rank_results(rank, layout, root, reduce_dtype):
    return run_all(root, new_parallel_context(layout, tp_reduce_dtype=reduce_dtype))


def distance(actual, expected):
    return float((actual.double() - expected.double()).norm() / expected.double().norm())


@pytest.fixture(scope="module")
def one_rank(dit_reference):
    return run_all(dit_reference, ParallelContext.single_rank())


@pytest.mark.parametrize("name", LAYOUTS)
def test_every_layout_equals_one_rank(name, dit_reference, one_rank):
    layout = LAYOUTS[name]
    ranks = run_ranks(layout.world_size, rank_results, layout, dit_reference, torch.float32)
    for results in ranks[1:]:
        assert all(torch.equal(value, ranks[0][key]) for key, value in results.items())
    for key, value in ranks[0].items():
        if key[1] == torch.float32:
            assert distance(value, one_rank[key]) <= 1e-6, key
    check_bfloat16(ranks[0], dit_reference)


def test_bfloat16_reductions_keep_the_bar(dit_reference):
    layout = LAYOUTS["tp2"]
    check_bfloat16(run_ranks(2, rank_results, layout, dit_reference, torch.bfloat16)[0], dit_reference)


def check_bfloat16(results, root):
    for case in CASES:
        outputs = load_file(root / case / "outputs.safetensors")
        ratios = [
            distance(results[case, torch.bfloat16, seed], outputs[f"{seed}.fp32"])
            / distance(outputs[f"{seed}.bf16"], outputs[f"{seed}.fp32"])
            for seed in range(8)
        ]
        assert statistics.median(ratios) <= 1.10, (case, ratios)
        assert max(ratios) <= 1.25, (case, ratios)


def compiled_results(rank, root):
    """Per case: distances from eager, the number of graphs, and the code of the token graph."""
    return {(name, case): compile_one(LAYOUTS[name], root / case) for name, case in COMPILED}


def compile_one(layout, folder):
    torch._dynamo.reset()
    model = load(folder, new_parallel_context(layout))
    inputs = load_file(folder / "inputs.safetensors")
    whole, tokens = CompileCounterWithBackend("aot_eager"), CompileCounterWithBackend("aot_eager")
    distances = []
    with torch.no_grad():
        expected = [model(*arguments(inputs, seed)) for seed in (0, 1)]
        compiled = torch.compile(model, backend=whole, fullgraph=True)
        distances += [distance(compiled(*arguments(inputs, seed)), expected[seed]) for seed in (0, 1)]
        model.forward_tokens = torch.compile(model.forward_tokens, backend=tokens, fullgraph=True)
        distances += [distance(model(*arguments(inputs, seed)), expected[seed]) for seed in (0, 1)]
    return distances, whole.frame_count, tokens.frame_count, tokens.graphs[0].code


def test_one_graph_serves_all_ranks_and_requests(dit_reference):
    ranks = run_ranks(2, compiled_results, dit_reference, timeout_s=150)
    for results in ranks:
        for key, (distances, whole, tokens, code) in results.items():
            assert max(distances) <= 1e-6, key
            assert whole == tokens == 1, key
            assert code == ranks[0][key][3], key
            assert "_c10d_functional" in code, key
