"""Parallel layers over gloo ranks against a float64 oracle and against torch's layers on one rank."""

import pytest
import torch
from torch import nn
from torch.nn import functional

from omni_neuron.distributed.errors import ShardingError
from omni_neuron.distributed.groups import ParallelGroup
from omni_neuron.distributed.layout import ParallelLayout
from omni_neuron.distributed.loading.weight_loaders import get_weight_loader
from omni_neuron.distributed.process_groups import new_parallel_context
from omni_neuron.distributed.tensor_parallel import (
    ColumnParallelLinear,
    FusedColumnParallelLinear,
    RowParallelLinear,
    VocabParallelEmbedding,
)
from omni_neuron.distributed.testing import run_ranks, simulated_rank

BF16_ROUNDING = 1.66e-3  # relative L2 of one rounding to bfloat16
INPUTS, HIDDEN, TOKENS, VOCABULARY = 24, 48, 33, 13
FUSED = (16, 8, 24)
ONE = ParallelGroup.single("tp")


def fill(module, **whole):
    """Load whole tensors through the loaders that the layer attached to its parameters."""
    for name, parameter in module.named_parameters():
        tensors = whole[name] if isinstance(whole[name], list) else [whole[name]]
        loader = get_weight_loader(parameter)
        assert loader.expected_shapes(parameter.shape) == [tuple(tensor.shape) for tensor in tensors]
        parameter.data = loader(tensors).to(parameter.dtype)
    return module


def weights(dtype):
    """Values that are exact in ``dtype``, biases as large as the products they join."""
    generator = torch.Generator().manual_seed(0)

    def random(*shape):
        return torch.randn(*shape, generator=generator).to(dtype).float()

    return {
        "x": random(2, TOKENS, INPUTS),
        "hidden": random(2, TOKENS, HIDDEN),
        "column": random(HIDDEN, INPUTS),
        "column_bias": random(HIDDEN) * 4,
        "row": random(INPUTS, HIDDEN),
        "row_bias": random(INPUTS) * 8,
        "fused": [random(size, INPUTS) for size in FUSED],
        "fused_bias": [random(size) for size in FUSED],
        "table": random(VOCABULARY, INPUTS),
        "ids": torch.randint(0, VOCABULARY, (2, TOKENS), generator=generator),
    }


def layers(group, dtype, reduce_dtype):
    w = weights(dtype)
    column = fill(
        ColumnParallelLinear(INPUTS, HIDDEN, group, dtype=dtype), weight=w["column"], bias=w["column_bias"]
    )
    fused = fill(
        FusedColumnParallelLinear(INPUTS, FUSED, group, dtype=dtype), weight=w["fused"], bias=w["fused_bias"]
    )
    row = fill(
        RowParallelLinear(HIDDEN, INPUTS, group, dtype=dtype, reduce_dtype=reduce_dtype),
        weight=w["row"],
        bias=w["row_bias"],
    )
    bare = fill(
        RowParallelLinear(HIDDEN, INPUTS, group, bias=False, dtype=dtype, reduce_dtype=reduce_dtype),
        weight=w["row"],
    )
    table = fill(VocabParallelEmbedding(VOCABULARY, INPUTS, group, dtype=dtype), weight=w["table"])
    x = w["x"].to(dtype)
    hidden = w["hidden"].to(dtype)
    share = HIDDEN // group.size
    mine = hidden.narrow(-1, group.rank_in_group * share, share)
    with torch.no_grad():
        return {
            "column": column(x),
            "fused": fused(x),
            "row": row(mine),
            "bare": bare(mine),
            "table": table(w["ids"]),
        }


CASES = [
    (torch.float32, torch.float32),
    (torch.bfloat16, torch.float32),
    (torch.bfloat16, torch.bfloat16),
]


def every_case(rank, tp):
    context = new_parallel_context(ParallelLayout(tp=tp))
    return [layers(context.tp, *case) for case in CASES]


@pytest.fixture(scope="module", params=[2, 4])
def ranks(request):
    return run_ranks(request.param, every_case, request.param)


def oracle(dtype):
    w = {
        name: value.double() if isinstance(value, torch.Tensor) else [part.double() for part in value]
        for name, value in weights(dtype).items()
    }
    return {
        "column": w["x"] @ w["column"].T + w["column_bias"],
        "fused": [w["x"] @ m.T + b for m, b in zip(w["fused"], w["fused_bias"], strict=True)],
        "row": w["hidden"] @ w["row"].T + w["row_bias"],
        "bare": w["hidden"] @ w["row"].T,
        "table": w["table"][w["ids"].long()],
    }


def relative(result, reference):
    return ((result.double() - reference).norm() / reference.norm()).item()


def bar(dtype, roundings=1):
    return 1e-6 if dtype == torch.float32 else 1.15 * BF16_ROUNDING * roundings**0.5


@pytest.mark.parametrize("case", range(3), ids=["fp32", "bf16", "bf16-reduce-bf16"])
def test_column_layers_give_each_rank_its_features(ranks, case):
    dtype, _ = CASES[case]
    reference = oracle(dtype)
    results = [rank[case] for rank in ranks]
    column = torch.cat([result["column"] for result in results], -1)
    assert column.dtype == dtype
    assert relative(column, reference["column"]) <= bar(dtype)
    for part, expected in enumerate(reference["fused"]):
        joined = torch.cat([result["fused"][part] for result in results], -1)
        assert joined.shape == expected.shape
        assert relative(joined, expected) <= bar(dtype)


@pytest.mark.parametrize("name", ["row", "bare"])
def test_row_layers_round_once_when_reduced_in_float32(ranks, name):
    for case in (0, 1):
        dtype, _ = CASES[case]
        for result in (rank[case][name] for rank in ranks):
            assert result.dtype == dtype
            assert torch.equal(result, ranks[0][case][name])
            assert relative(result, oracle(dtype)[name]) <= bar(dtype)


def test_row_layers_differ_from_one_rank_only_where_float32_sums_straddle_a_rounding(ranks):
    alone = layers(ONE, torch.bfloat16, torch.float32)["row"]
    together = ranks[0][1]["row"]
    assert (alone != together).float().mean() <= 0.01


def test_row_layers_with_a_bfloat16_payload_round_before_the_wire(ranks):
    # One rounding per partial product, one per addition on the wire, one with the bias.
    error = relative(ranks[0][2]["bare"], oracle(torch.bfloat16)["bare"])
    assert bar(torch.bfloat16) < error <= bar(torch.bfloat16, 1 + len(ranks))
    biased = relative(ranks[0][2]["row"], oracle(torch.bfloat16)["row"])
    assert biased <= bar(torch.bfloat16, 2 + len(ranks))


def test_embedding_rows_are_exact_on_every_rank(ranks):
    for case, (dtype, _) in enumerate(CASES):
        for rank in ranks:
            assert rank[case]["table"].dtype == dtype
            assert torch.equal(rank[case]["table"].double(), oracle(dtype)["table"])


def test_one_rank_is_torchs_own_layer():
    w = weights(torch.float32)
    result = layers(ONE, torch.float32, torch.float32)
    assert torch.equal(result["column"], functional.linear(w["x"], w["column"], w["column_bias"]))
    assert torch.equal(result["row"], functional.linear(w["hidden"], w["row"], w["row_bias"]))
    assert torch.equal(result["table"], functional.embedding(w["ids"], w["table"]))
    rounded = layers(ONE, torch.bfloat16, torch.bfloat16)["row"]
    b = {name: weights(torch.bfloat16)[name].bfloat16() for name in ("hidden", "row", "row_bias")}
    assert torch.equal(rounded, functional.linear(b["hidden"], b["row"], b["row_bias"]))
    with pytest.raises(IndexError):
        VocabParallelEmbedding(3, 2, ONE)(torch.tensor([3]))


def test_what_the_group_does_not_divide_is_refused():
    with simulated_rank(0, 4):
        group = new_parallel_context(ParallelLayout(tp=4)).tp
        refused = [
            (lambda: ColumnParallelLinear(8, 6, group), "out_features=6 must be divisible by tp=4"),
            (lambda: RowParallelLinear(6, 8, group), "in_features=6 must be divisible by tp=4"),
            (lambda: FusedColumnParallelLinear(8, (8, 6), group), r"out_features\[1\]=6 must be"),
            (lambda: VocabParallelEmbedding(0, 8, group), "num_embeddings=0 must be at least 1"),
            (
                lambda: RowParallelLinear(8, 8, group, reduce_dtype=torch.float16),
                r"reduce_dtype=torch\.float16 must be",
            ),
        ]
        for build, message in refused:
            with pytest.raises(ShardingError, match=message):
                build()


def test_layers_build_on_the_meta_device_with_their_loaders():
    with simulated_rank(0, 2):
        group = new_parallel_context(ParallelLayout(tp=2)).tp
        model = nn.ModuleList(
            [
                ColumnParallelLinear(8, 6, group, bias=False, dtype=torch.bfloat16, device="meta"),
                RowParallelLinear(6, 8, group, device="meta"),
                VocabParallelEmbedding(5, 8, group, device="meta"),
            ]
        )
    assert [tuple(p.shape) for p in model.parameters()] == [(3, 8), (8, 3), (8,), (3, 8)]
    assert all(p.is_meta for p in model.parameters())
    assert model[0].bias is None
    assert "tp=2" in repr(model[1])
