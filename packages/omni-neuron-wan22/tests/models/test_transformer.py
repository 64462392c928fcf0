"""The whole transformer against diffusers, on one rank."""

import statistics

import pytest
import torch
from safetensors.torch import load_file, save_file

from omni_neuron.distributed.errors import ShardingError
from omni_neuron.distributed.groups import ParallelContext, ParallelGroup
from omni_neuron.distributed.loading.sharded_loader import load_sharded
from omni_neuron.runtime.errors import InputError
from omni_neuron.wan22.models.attention import sdpa_attention
from omni_neuron.wan22.models.config import WanConfig
from omni_neuron.wan22.models.transformer import WanTransformer3DModel

CASES = ["t2v", "batch", "condition", "per_token", "image", "first_last"]


def load(folder, dtype=torch.float32):
    model = WanTransformer3DModel(WanConfig.from_json_file(folder / "config.json"), dtype=dtype)
    load_sharded(model, folder, **model.load_options)
    return model


def run(model, inputs, seed):
    image = inputs.get(f"{seed}.image")
    with torch.no_grad():
        return model(
            inputs[f"{seed}.latents"], inputs[f"{seed}.timestep"], inputs[f"{seed}.text"], image
        ).float()


def distance(actual, expected):
    return float((actual.double() - expected.double()).norm() / expected.double().norm())


@pytest.fixture(params=CASES)
def case(request, dit_reference):
    folder = dit_reference / request.param
    return folder, load_file(folder / "inputs.safetensors"), load_file(folder / "outputs.safetensors")


def test_float32_equals_diffusers(case):
    folder, inputs, outputs = case
    model = load(folder)
    for seed in range(3):
        assert distance(run(model, inputs, seed), outputs[f"{seed}.fp32"]) <= 1e-6


def test_bfloat16_is_as_exact_as_diffusers(case):
    folder, inputs, outputs = case
    model = load(folder, torch.bfloat16)
    ratios = []
    for seed in range(8):
        exact, theirs = outputs[f"{seed}.fp32"], outputs[f"{seed}.bf16"]
        ratios.append(distance(run(model, inputs, seed), exact) / distance(theirs, exact))
    print([f"{ratio:.3f}" for ratio in ratios])
    assert statistics.median(ratios) <= 1.10
    assert max(ratios) <= 1.25


def test_dtypes_are_those_of_diffusers(dit_reference):
    model = load(dit_reference / "image", torch.bfloat16)
    exact = ("time_embedder", "scale_shift_table", "norm2", "image_embedder.norm1")
    for name, parameter in model.named_parameters():
        expected = torch.float32 if any(part in name for part in exact) else torch.bfloat16
        assert parameter.dtype == expected, name
    assert model.dtype == torch.bfloat16
    inputs = load_file(dit_reference / "image" / "inputs.safetensors")
    with torch.no_grad():
        out = model(*(inputs[f"0.{key}"] for key in ("latents", "timestep", "text", "image")))
    assert out.dtype == torch.bfloat16


def test_the_unused_query_norm_of_old_checkpoints_is_ignored(dit_reference, tmp_path):
    folder = dit_reference / "image"
    tensors = load_file(folder / "diffusion_pytorch_model.safetensors")
    tensors["blocks.1.attn2.norm_added_q.weight"] = torch.ones(48)
    save_file(tensors, tmp_path / "diffusion_pytorch_model.safetensors")
    model = WanTransformer3DModel(WanConfig.from_json_file(folder / "config.json"))
    loaded = load_sharded(model, tmp_path, **model.load_options)
    assert loaded == {name for name, _ in model.named_parameters()}


@pytest.mark.parametrize(("name", "count"), [("A14B", 14_288_491_584), ("1.3B", 1_418_996_800)])
def test_published_sizes(name, count):
    shape = {"A14B": {}, "1.3B": {"num_attention_heads": 12, "ffn_dim": 8960, "num_layers": 30}}[name]
    model = WanTransformer3DModel(WanConfig(**shape), device="meta")
    assert sum(parameter.numel() for parameter in model.parameters()) == count
    key_map = model.key_map()
    keys = [key for n, _ in model.named_parameters() for key in key_map.get(n, (n,))]
    assert len(keys) == len(set(keys)) == 27 * model.config.num_layers + 15


def test_each_attention_gets_its_role_and_the_heads_of_this_rank():
    asked = []

    def factory(role, num_heads, head_dim):
        asked.append((role, num_heads, head_dim))
        return sdpa_attention(role, num_heads, head_dim)

    config = WanConfig(num_attention_heads=2, attention_head_dim=12, num_layers=1, ffn_dim=8)
    WanTransformer3DModel(config, attention=factory, device="meta")
    assert asked == [("self", 2, 12), ("cross", 2, 12)]


@pytest.mark.parametrize(
    ("field", "change"),
    [("num_attention_heads", {"num_attention_heads": 4}), ("ffn_dim", {"ffn_dim": 178})],
)
def test_a_degree_that_does_not_divide_is_refused_before_anything_is_built(field, change, monkeypatch):
    tp = ParallelGroup.single("tp")
    monkeypatch.setattr(ParallelGroup, "size", property(lambda self: 3 if self is tp else 1))
    one = ParallelContext.single_rank()
    parallel = ParallelContext(tp, one.cp, one.cfg, one.text_encoder)
    config = WanConfig(**{"num_attention_heads": 6, "ffn_dim": 174, "attention_head_dim": 12, **change})
    with pytest.raises(ShardingError, match=rf"{field}=\d+ must be divisible by tp=3: choose tp from 1, 2"):
        WanTransformer3DModel(config, parallel)


BAD_INPUTS = {
    "channels": ({"latents": (1, 15, 1, 4, 4)}, r"\(1, 15, 1, 4, 4\) must be \[B, 16, T, H, W\]"),
    "odd size": ({"latents": (1, 16, 1, 5, 4)}, r"\(1, 5, 4\) must be a multiple of patch_size"),
    "timestep": ({"timestep": (1, 3)}, r"timestep of shape \(1, 3\) must be \[1\] or \[1, 4\]"),
    "text": ({"text": (1, 512, 9)}, r"\(1, 512, 9\) must be \[1, 512, 8\]"),
    "image": ({"image": (1, 7, 9)}, "exactly when the model has an image branch"),
    "long": ({"latents": (1, 16, 1, 4, 20)}, "width=10 tokens must be at most rope_max_seq_len=9"),
}


@pytest.mark.parametrize("name", BAD_INPUTS)
def test_inputs_that_do_not_fit_are_refused(name):
    change, message = BAD_INPUTS[name]
    config = WanConfig(
        num_attention_heads=1, attention_head_dim=12, num_layers=1, ffn_dim=8, text_dim=8, rope_max_seq_len=9
    )
    shapes = {"latents": (1, 16, 1, 4, 4), "timestep": (1,), "text": (1, 512, 8), "image": None, **change}
    arguments = [None if shape is None else torch.zeros(shape) for shape in shapes.values()]
    with pytest.raises(InputError, match=message):
        WanTransformer3DModel(config)(*arguments)
