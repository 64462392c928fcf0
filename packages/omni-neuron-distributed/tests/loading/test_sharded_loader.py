"""Whole models from folders: every rank gets its part, and a checkpoint that does not fit is told whole."""

import os
from dataclasses import replace

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from omni_neuron.distributed.errors import CheckpointError, ShardingError
from omni_neuron.distributed.groups import ParallelContext
from omni_neuron.distributed.layout import ParallelLayout
from omni_neuron.distributed.loading.placement import Piece
from omni_neuron.distributed.loading.sharded_loader import load_sharded
from omni_neuron.distributed.loading.weight_loaders import (
    WeightLoader,
    replicated,
    set_weight_loader,
    transposed,
)
from omni_neuron.distributed.process_groups import new_parallel_context
from omni_neuron.distributed.tensor_parallel import (
    ColumnParallelLinear,
    FusedColumnParallelLinear,
    RowParallelLinear,
    VocabParallelEmbedding,
)
from omni_neuron.distributed.testing import simulated_rank
from omni_neuron.runtime.errors import InputError

NAME = "diffusion_pytorch_model.safetensors"
KEY_MAP = {
    "to_qkv.weight": ("to_q.weight", "to_k.weight", "to_v.weight"),
    "to_qkv.bias": ("to_q.bias", "to_k.bias", "to_v.bias"),
}


class Model(nn.Module):
    def __init__(self, group, dtype=torch.float32, device=None):
        super().__init__()
        options = {"dtype": dtype, "device": device}
        self.embedding = VocabParallelEmbedding(7, 8, group, **options)
        self.to_qkv = FusedColumnParallelLinear(8, (8, 4, 4), group, **options)
        self.up = ColumnParallelLinear(8, 12, group, bias=False, **options)
        self.down = RowParallelLinear(12, 8, group, **options)
        self.norm = nn.LayerNorm(8, dtype=torch.float32, device=device)
        self.scale = nn.Parameter(torch.empty((), **options), requires_grad=False)
        self.register_buffer("table", torch.full((3,), 5.0))


def checkpoint():
    generator = torch.Generator().manual_seed(3)

    def random(*shape):
        return torch.randn(shape, generator=generator)

    return {
        "embedding.weight": random(7, 8),
        "to_q.weight": random(8, 8),
        "to_k.weight": random(4, 8),
        "to_v.weight": random(4, 8),
        "to_q.bias": random(8),
        "to_k.bias": random(4),
        "to_v.bias": random(4),
        "up.weight": random(12, 8),
        "down.weight": random(8, 12),
        "down.bias": random(8),
        "norm.weight": random(8),
        "norm.bias": random(8),
        "scale": random(),
    }


def one_rank_model(**options):
    return Model(ParallelContext.single_rank().tp, **options)


def load(folder, model, **options):
    return load_sharded(model, folder, key_map=KEY_MAP, **options)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("device", [None, "meta"])
@pytest.mark.parametrize("tp", [1, 2, 4])
def test_every_rank_gets_its_part_in_its_dtype(tmp_path, tp, device, dtype):
    whole = checkpoint()
    save_file(whole, tmp_path / NAME)
    vocabulary = torch.zeros(-(-7 // tp) * tp, 8)
    vocabulary[:7] = whole["embedding.weight"]
    for rank in range(tp):
        with simulated_rank(rank, tp):
            model = Model(new_parallel_context(ParallelLayout(tp=tp)).tp, dtype, device)
            before = dict(model.named_parameters())
            assert load(tmp_path, model) == set(before)

        def share(tensor, dim, rank=rank):
            return tensor.chunk(tp, dim)[rank]

        expected = {
            "embedding.weight": share(vocabulary, 0),
            "to_qkv.weight": torch.cat([share(whole[f"to_{name}.weight"], 0) for name in "qkv"]),
            "to_qkv.bias": torch.cat([share(whole[f"to_{name}.bias"], 0) for name in "qkv"]),
            "up.weight": share(whole["up.weight"], 0),
            "down.weight": share(whole["down.weight"], 1),
            "down.bias": whole["down.bias"],
            "norm.weight": whole["norm.weight"],
            "norm.bias": whole["norm.bias"],
            "scale": whole["scale"],
        }
        after = dict(model.named_parameters())
        assert after.keys() == expected.keys()
        for name, parameter in after.items():
            wanted = torch.float32 if name.startswith("norm") else dtype
            assert parameter.dtype == wanted, name
            assert parameter.is_contiguous()
            assert torch.equal(parameter, expected[name].to(wanted)), name
            assert parameter.requires_grad == (name != "scale")
            assert (parameter is before[name]) == (device is None)
        assert torch.equal(model.table, torch.full((3,), 5.0))


def test_the_model_outlives_the_file(tmp_path):
    whole = checkpoint()
    save_file(whole, tmp_path / NAME)
    model = one_rank_model(device="meta")
    load(tmp_path, model)
    with open(tmp_path / NAME, "r+b") as file:
        file.write(b"\xff" * os.path.getsize(tmp_path / NAME))
    assert torch.equal(model.norm.weight, whole["norm.weight"])
    assert torch.equal(model.down.weight, whole["down.weight"])


@pytest.mark.parametrize("device", [None, "meta"])
def test_parameters_may_take_the_checkpoints_dtype(tmp_path, device):
    whole = {key: value.to(torch.float16) for key, value in checkpoint().items()}
    save_file(whole, tmp_path / NAME)
    model = one_rank_model(device=device)
    load(tmp_path, model, dtype_from_param=False)
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float16}
    assert torch.equal(model.up.weight, whole["up.weight"])


def test_everything_that_does_not_fit_is_listed_and_nothing_is_loaded(tmp_path):
    tensors = checkpoint()
    del tensors["to_k.weight"], tensors["norm.bias"]
    tensors["down.weight"] = torch.zeros(12, 8)
    tensors["to_v.bias"] = torch.zeros(8)
    tensors["scale"] = torch.tensor(3)
    tensors["lora.up"] = tensors["lora.down"] = torch.zeros(2)
    tensors = {key: value.clone() for key, value in tensors.items()}
    save_file(tensors, tmp_path / NAME)
    model = one_rank_model()
    for parameter in model.parameters():
        parameter.data.fill_(-1)
    with pytest.raises(CheckpointError) as caught:
        load(tmp_path, model)
    error = caught.value
    assert error.missing == ("norm.bias", "to_k.weight")
    assert error.extra == ("lora.down", "lora.up")
    assert error.misfit == (
        "down.weight is [12, 8] instead of [8, 12]",
        "scale holds I64 for a parameter of torch.float32",
        "to_v.bias is [8] instead of [4]",
    )
    message = str(error)
    assert f"The tensors of checkpoint {tmp_path} must be those of Model, but there are 2 missing" in message
    assert "\n" not in message
    for item in (*error.missing, *error.extra, *error.misfit):
        assert item in message
    assert all((parameter == -1).all() for parameter in model.parameters())


def test_shapes_are_those_of_the_whole_tensor_on_every_rank(tmp_path):
    tensors = checkpoint() | {"up.weight": torch.zeros(6, 8)}
    save_file(tensors, tmp_path / NAME)
    with simulated_rank(1, 2):
        model = Model(new_parallel_context(ParallelLayout(tp=2)).tp)
        with pytest.raises(CheckpointError) as caught:
            load(tmp_path, model)
    assert caught.value.misfit == ("up.weight is [6, 8] instead of [12, 8]",)


def test_unused_keys_may_be_ignored_by_prefix_only(tmp_path):
    extra = {"encoder.a": torch.zeros(1), "encoder.b": torch.zeros(1), "encode": torch.zeros(1)}
    save_file(checkpoint() | extra, tmp_path / NAME)
    with pytest.raises(CheckpointError) as caught:
        load(tmp_path, one_rank_model(), ignore=("encoder.",))
    assert caught.value.extra == ("encode",)
    load(tmp_path, one_rank_model(), ignore=("encoder.", "encode"))


@pytest.mark.parametrize(
    "present", [["embedding.weight"], ["shared.weight"], ["tok.weight", "shared.weight"]]
)
def test_one_of_several_names_is_enough_and_all_may_be_there(tmp_path, present):
    tensors = checkpoint()
    table = tensors.pop("embedding.weight")
    save_file(tensors | {name: table.clone() for name in present}, tmp_path / NAME)
    model = one_rank_model()
    load(tmp_path, model, aliases={"embedding.weight": ("shared.weight", "tok.weight")})
    assert torch.equal(model.embedding.weight, table)


def test_a_tensor_under_none_of_its_names_is_missing_and_duplicates_must_fit(tmp_path):
    aliases = {"embedding.weight": ("shared.weight",)}
    tensors = checkpoint()
    table = tensors.pop("embedding.weight")
    save_file(tensors, tmp_path / NAME)
    with pytest.raises(CheckpointError) as caught:
        load(tmp_path, one_rank_model(), aliases=aliases)
    assert caught.value.missing == ("embedding.weight or shared.weight",)
    save_file(tensors | {"embedding.weight": table, "shared.weight": table[:3].clone()}, tmp_path / NAME)
    with pytest.raises(CheckpointError) as caught:
        load(tmp_path, one_rank_model(), aliases=aliases)
    assert caught.value.misfit == ("shared.weight is [3, 8] instead of [7, 8]",)


def test_tied_parameters_stay_tied(tmp_path):
    class Tied(nn.Module):
        def __init__(self, device):
            super().__init__()
            self.shared = nn.Module()
            self.encoder = nn.Module()
            self.encoder.embed_tokens = nn.Module()
            self.shared.weight = nn.Parameter(torch.empty(4, 2, device=device))
            self.encoder.embed_tokens.weight = self.shared.weight

    table = torch.randn(4, 2)
    save_file({"encoder.embed_tokens.weight": table}, tmp_path / "model.safetensors")
    for device in ("cpu", "meta"):
        model = Tied(device)
        aliases = {"shared.weight": ("encoder.embed_tokens.weight",)}
        assert load_sharded(model, tmp_path, aliases=aliases) == {"shared.weight"}
        assert model.shared.weight is model.encoder.embed_tokens.weight
        assert torch.equal(model.shared.weight, table)


def test_a_loader_stays_with_its_materialised_parameter(tmp_path):
    save_file(checkpoint(), tmp_path / NAME)
    model = one_rank_model(device="meta")
    loader = model.up.weight.weight_loader
    load(tmp_path, model)
    assert model.up.weight.weight_loader is loader
    load(tmp_path, model)


def test_a_key_map_that_does_not_fit_the_model_is_refused(tmp_path):
    save_file(checkpoint(), tmp_path / NAME)
    cases = [
        (KEY_MAP | {"to_kv.weight": ("a",)}, "key_map names to_kv.weight, which must be parameters"),
        (
            KEY_MAP | {"up.weight": ("to_q.weight",)},
            "uses the checkpoint key to_q.weight for to_qkv",
        ),
        ({}, r"key_map gives to_qkv.weight 1 checkpoint keys \(to_qkv.weight\), but its loader must have 3"),
    ]
    for key_map, message in cases:
        with pytest.raises(InputError, match=message):
            load_sharded(one_rank_model(), tmp_path, key_map=key_map)


def test_a_loader_that_does_not_fit_its_parameter_is_refused(tmp_path):
    class Transposing(WeightLoader):
        def placement(self, shapes):
            return transposed(replicated()).placement(shapes)

        def expected_shapes(self, param_shape):
            return [tuple(param_shape)]

    save_file(checkpoint(), tmp_path / NAME)
    model = one_rank_model()
    set_weight_loader(model.up.weight, Transposing())
    with pytest.raises(ShardingError, match=r"loader of up.weight gave \[8, 12\], which must be .*\[12, 8\]"):
        load(tmp_path, model)


def test_a_key_that_two_parameters_would_read_is_refused(tmp_path):
    save_file(checkpoint(), tmp_path / NAME)
    model = one_rank_model()
    model.other = nn.Parameter(torch.empty(8))
    message = r"aliases use the checkpoint key norm\.weight for other and for norm\.weight"
    with pytest.raises(InputError, match=message):
        load(tmp_path, model, aliases={"other": ("norm.weight",)})


def test_eight_bit_floats_fill_only_parameters_of_their_own_dtype(tmp_path):
    values = torch.arange(4.0).to(torch.float8_e4m3fn)
    save_file({"w": values}, tmp_path / "model.safetensors")
    model = nn.Module()
    model.w = nn.Parameter(torch.empty(4), requires_grad=False)
    with pytest.raises(CheckpointError) as caught:
        load_sharded(model, tmp_path)
    assert caught.value.misfit == ("w holds F8_E4M3 for a parameter of torch.float32",)
    model.w = nn.Parameter(torch.empty(4, dtype=torch.float8_e4m3fn), requires_grad=False)
    load_sharded(model, tmp_path)
    assert torch.equal(model.w.float(), values.float())


def test_a_loader_that_leaves_entries_out_is_refused_before_anything_is_loaded(tmp_path):
    class Half(WeightLoader):
        def placement(self, shapes):
            whole = replicated().placement(shapes)
            (piece,) = whole.pieces
            rows = (slice(0, 6), *piece.read[1:])
            return replace(whole, pieces=(Piece(0, rows, rows),))

        def expected_shapes(self, param_shape):
            return [tuple(param_shape)]

    save_file(checkpoint(), tmp_path / NAME)
    model = one_rank_model()
    model.norm.weight.data.fill_(-1)
    set_weight_loader(model.up.weight, Half())
    with pytest.raises(ShardingError, match=r"loader of up\.weight writes 48 entries, which .* 96 once"):
        load(tmp_path, model)
    assert (model.norm.weight == -1).all()
