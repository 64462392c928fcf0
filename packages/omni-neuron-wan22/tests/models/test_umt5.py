"""The text encoder against transformers, over ranks, from every form of checkpoint, and as one graph."""

import os
import statistics
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch._dynamo.testing import CompileCounterWithBackend

from omni_neuron.distributed.errors import CheckpointError, ShardingError
from omni_neuron.distributed.groups import ParallelGroup
from omni_neuron.distributed.layout import ParallelLayout
from omni_neuron.distributed.loading.sharded_loader import load_sharded
from omni_neuron.distributed.process_groups import new_parallel_context
from omni_neuron.distributed.testing import run_ranks
from omni_neuron.runtime.errors import InputError
from omni_neuron.wan22.models.umt5 import UMT5Encoder
from omni_neuron.wan22.models.umt5_config import UMT5Config

SEEDS = range(8)
SINGLE = ParallelGroup.single("text_encoder")


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    folder = tmp_path_factory.mktemp("umt5")
    script = Path(__file__).parent.parent / "reference" / "umt5.py"
    subprocess.run(
        [sys.executable, str(script), str(folder)],
        check=True,
        timeout=120,
        env={**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"},
    )
    return folder


def load(folder, group=SINGLE, dtype=torch.float32, **options):
    encoder = UMT5Encoder(UMT5Config.from_json_file(folder / "config.json"), group, dtype, **options)
    load_sharded(encoder, folder, **encoder.load_options)
    return encoder


def encode(encoder, tensors, seed):
    with torch.no_grad():
        return encoder(tensors[f"{seed}.ids"], tensors[f"{seed}.mask"]).float()


def distance(actual, expected):
    return float((actual.double() - expected.double()).norm() / expected.double().norm())


def check_bfloat16(results, tensors):
    ratios = []
    for seed, result in zip(SEEDS, results, strict=True):
        exact, theirs = tensors[f"{seed}.fp32"], tensors[f"{seed}.bf16"]
        ratios.append(distance(result, exact) / distance(theirs, exact))
    print([f"{ratio:.3f}" for ratio in ratios])
    assert statistics.median(ratios) <= 1.10
    assert max(ratios) <= 1.25


def test_float32_equals_transformers_and_padding_is_zero(reference):
    tensors = load_file(reference / "encoded.safetensors")
    encoder = load(reference)
    for seed in SEEDS:
        result = encode(encoder, tensors, seed)
        assert distance(result, tensors[f"{seed}.fp32"]) <= 1e-6
        assert result[tensors[f"{seed}.mask"] == 0].count_nonzero() == 0


def test_bfloat16_is_as_exact_as_transformers(reference):
    tensors = load_file(reference / "encoded.safetensors")
    encoder = load(reference, dtype=torch.bfloat16)
    with torch.no_grad():
        assert encoder(tensors["0.ids"], tensors["0.mask"]).dtype == encoder.dtype == torch.bfloat16
    check_bfloat16([encode(encoder, tensors, seed) for seed in SEEDS], tensors)


def test_padding_tokens_and_shorter_padding_change_nothing(reference):
    tensors = load_file(reference / "encoded.safetensors")
    ids, mask = tensors["2.ids"][1:], tensors["2.mask"][1:]
    used = int(mask.sum())
    encoder = load(reference)
    with torch.no_grad():
        expected = encoder(ids, mask)[:, :used]
        assert torch.equal(encoder(torch.where(mask == 1, ids, 5), mask)[:, :used], expected)
        assert distance(encoder(ids[:, :used], mask[:, :used]), expected) <= 1e-6


@pytest.mark.parametrize("present", ["shared", "embed_tokens", "both", "neither"])
def test_the_tied_embedding_may_come_under_either_name(reference, tmp_path, present):
    weights = load_file(reference / "model.safetensors")
    table = next(
        weights.pop(key) for key in ("shared.weight", "encoder.embed_tokens.weight") if key in weights
    )
    weights.pop("encoder.embed_tokens.weight", None)
    if present in ("shared", "both"):
        weights["shared.weight"] = table
    if present in ("embed_tokens", "both"):
        weights["encoder.embed_tokens.weight"] = table.clone()
    save_file(weights, tmp_path / "model.safetensors")
    encoder = UMT5Encoder(UMT5Config.from_json_file(reference / "config.json"))
    if present == "neither":
        with pytest.raises(CheckpointError, match=r"encoder\.embed_tokens\.weight"):
            load_sharded(encoder, tmp_path, **encoder.load_options)
        return
    names = load_sharded(encoder, tmp_path, **encoder.load_options)
    assert names == {name for name, _ in encoder.named_parameters()}
    assert torch.equal(encoder.state_dict()["encoder.embed_tokens.weight"], table)


def test_an_encoder_built_on_the_meta_device_loads(reference):
    tensors = load_file(reference / "encoded.safetensors")
    result = encode(load(reference, device="meta"), tensors, 0)
    assert torch.equal(result, encode(load(reference), tensors, 0))


def rank_results(rank, folder):
    """Results in fp32 by seed, then bf16 by payload of the reductions, then what the graph gave."""
    tensors = load_file(folder / "encoded.safetensors")
    group = new_parallel_context(ParallelLayout(tp=2)).text_encoder
    encoder = load(folder, group)
    exact = [encode(encoder, tensors, seed) for seed in SEEDS]
    half = {}
    for payload in (torch.float32, torch.bfloat16):
        model = load(folder, group, torch.bfloat16, reduce_dtype=payload)
        half[payload] = [encode(model, tensors, seed) for seed in SEEDS]
    counter = CompileCounterWithBackend("aot_eager")
    encoder.forward = torch.compile(encoder.forward, backend=counter, fullgraph=True, dynamic=False)
    graphed = [encode(encoder, tensors, seed) for seed in (0, 1)]
    return exact, half, graphed, counter.frame_count, counter.graphs[0].code


@pytest.fixture(scope="module")
def two_ranks(reference):
    return run_ranks(2, rank_results, reference)


def test_two_ranks_equal_one(reference, two_ranks):
    tensors = load_file(reference / "encoded.safetensors")
    one = load(reference)
    for seed in SEEDS:
        first, second = (exact[seed] for exact, *_ in two_ranks)
        assert torch.equal(first, second)
        assert distance(first, encode(one, tensors, seed)) <= 1e-6
        assert distance(first, tensors[f"{seed}.fp32"]) <= 1e-6


@pytest.mark.parametrize("payload", [torch.float32, torch.bfloat16], ids=str)
def test_two_ranks_keep_the_bfloat16_bar(reference, two_ranks, payload):
    first, second = (half[payload] for _, half, *_ in two_ranks)
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))
    check_bfloat16(first, load_file(reference / "encoded.safetensors"))


def test_one_graph_serves_every_request(two_ranks):
    for exact, _, graphed, graphs, code in two_ranks:
        assert graphs == 1
        assert "_c10d_functional" in code
        assert max(distance(graphed[seed], exact[seed]) for seed in (0, 1)) <= 1e-6


@pytest.mark.parametrize(("field", "value"), [("num_heads", 5), ("d_ff", 55)])
def test_a_degree_that_does_not_divide_is_refused(field, value, monkeypatch):
    monkeypatch.setattr(ParallelGroup, "size", property(lambda self: 2))
    config = UMT5Config(**{"vocab_size": 8, "d_model": 8, "d_kv": 2, "num_heads": 4, "d_ff": 8, field: value})
    with pytest.raises(ShardingError, match="must be divisible by text_encoder=2"):
        UMT5Encoder(config, SINGLE, device="meta")


def test_published_size():
    config = UMT5Config(vocab_size=256384, d_model=4096, d_ff=10240, num_layers=24, num_heads=64)
    encoder = UMT5Encoder(config, device="meta")
    assert sum(parameter.numel() for parameter in encoder.parameters()) == 5_680_910_336


def test_inputs_that_do_not_fit_are_refused():
    config = UMT5Config(vocab_size=8, d_model=8, d_kv=2, num_heads=4, d_ff=8, num_layers=1)
    encoder = UMT5Encoder(config, max_length=4)
    with pytest.raises(InputError, match="text of 5 tokens must have at most 4"):
        encoder(torch.zeros(1, 5, dtype=torch.long), torch.ones(1, 5))
    with pytest.raises(InputError, match=r"\(1, 3\) and input_ids of shape \(1, 4\) must both be"):
        encoder(torch.zeros(1, 4, dtype=torch.long), torch.ones(1, 3))
