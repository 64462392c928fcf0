"""The VAE decoder against diffusers, chunk by chunk in both forms, and as one graph."""

import json
import os
import statistics
import subprocess
import sys
import weakref
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch._dynamo.testing import CompileCounterWithBackend

from omni_neuron.distributed.loading.sharded_loader import load_sharded
from omni_neuron.distributed.testing import run_ranks
from omni_neuron.runtime.errors import InputError
from omni_neuron.wan22.models.vae import NeuronAutoencoderKLWan
from omni_neuron.wan22.models.vae_config import WanVAEConfig

FAMILIES = ["vae21", "vae22"]
FRAMES = [1, 2, 3, 5]
FORMS = ["natural", "static"]


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    folder = tmp_path_factory.mktemp("vae")
    script = Path(__file__).parent.parent / "reference" / "vae.py"
    subprocess.run(
        [sys.executable, str(script), str(folder)],
        check=True,
        timeout=200,
        env={**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"},
    )
    return folder


def load(folder, dtype=torch.float32, form="natural", device=None):
    vae = NeuronAutoencoderKLWan(WanVAEConfig.from_json_file(folder / "config.json"), dtype, device)
    names = load_sharded(vae, folder, **vae.load_options)
    assert names == {name for name, _ in vae.named_parameters()}
    if form == "static":
        vae.compile_chunks(lambda chunk: chunk)
    return vae


def distance(actual, expected):
    return float((actual.double() - expected.double()).norm() / expected.double().norm())


@pytest.fixture(params=FAMILIES)
def family(request, reference):
    folder = reference / request.param
    return folder, load_file(folder / "decoded.safetensors")


@pytest.mark.parametrize("form", FORMS)
def test_float32_equals_diffusers(family, form):
    folder, tensors = family
    vae = load(folder, form=form)
    for frames in FRAMES:
        (video,) = vae.decode(tensors[f"z.{frames}"], return_dict=False)
        expected = tensors[f"video.{frames}"]
        assert video.shape == expected.shape
        assert video.shape[2] == 4 * (frames - 1) + 1
        assert 0.1 < expected.std() < 1  # neither flat nor lost in the clamp
        assert distance(video, expected) <= 1e-6


@pytest.mark.parametrize("form", FORMS)
def test_bfloat16_is_as_exact_as_diffusers(family, form):
    folder, tensors = family
    vae = load(folder, torch.bfloat16, form)
    ratios = []
    for seed in range(8):
        (video,) = vae.decode(tensors[f"seed_z.{seed}"].bfloat16())
        exact, theirs = tensors[f"seed_fp32.{seed}"], tensors[f"seed_bf16.{seed}"]
        assert video.dtype == vae.dtype == torch.bfloat16
        ratios.append(distance(video, exact) / distance(theirs, exact))
    print([f"{ratio:.3f}" for ratio in ratios])
    assert statistics.median(ratios) <= 1.10
    assert max(ratios) <= 1.25


@pytest.mark.parametrize("form", FORMS)
def test_a_prefix_of_the_latents_gives_a_prefix_of_the_video(family, form):
    folder, tensors = family
    vae = load(folder, form=form)
    z = tensors["z.5"]
    (whole,) = vae.decode(z)
    for frames in range(1, 5):
        (part,) = vae.decode(z[:, :, :frames])
        assert torch.equal(part, whole[:, :, : 4 * frames - 3])


def test_both_forms_of_a_first_chunk_leave_the_same_caches(family):
    folder, tensors = family
    vae = load(folder)
    chunk = tensors["z.1"]
    before = vae.allocate_caches(chunk)
    natural, after_natural = vae.decode_chunk(chunk, True, tuple(before))
    static, after_static = vae.decode_chunk(chunk, torch.tensor(True), tuple(before))
    assert natural.shape[2] == 1
    assert static.shape[2] == 4
    torch.testing.assert_close(static[:, :, -1:], natural)
    shapes = [cache.shape for cache in before]
    assert [c.shape for c in after_natural] == [c.shape for c in after_static] == shapes
    untouched = 0
    for old, one, other in zip(before, after_natural, after_static, strict=True):
        torch.testing.assert_close(other, one)
        assert old.count_nonzero() == 0
        untouched += one.count_nonzero() == 0
        assert one[:, :, 0].count_nonzero() == other[:, :, 0].count_nonzero() == 0
    assert untouched == 2  # the temporal convolutions have seen nothing yet


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_no_cache_outlives_a_call(reference, form, fails, monkeypatch):
    vae = load(reference / "vae21", form=form)
    z = torch.randn(1, 4, 3, 4, 4)
    seen, calls = [], []
    allocate, convolve = vae.allocate_caches, vae.decoder.conv_out.forward

    def remember(z):
        caches = allocate(z)
        seen.append((caches, [weakref.ref(cache) for cache in caches]))
        return caches

    def stop_in_the_second_chunk(x, cache):
        calls.append(1)
        seen[0][1].extend(weakref.ref(cache) for cache in seen[0][0])
        if fails and len(calls) == 2:
            raise MemoryError("planted")
        return convolve(x, cache)

    monkeypatch.setattr(vae, "allocate_caches", remember)
    monkeypatch.setattr(vae.decoder.conv_out, "forward", stop_in_the_second_chunk)
    if fails:
        with pytest.raises(MemoryError, match="planted") as caught:
            vae.decode(z)
        assert caught.tb is not None  # the frames of the failed call are still there
    else:
        vae.decode(z)
    ((caches, references),) = seen
    assert caches == []
    assert len(references) > 32
    assert [reference() for reference in references if reference() is not None] == []
    calls.extend([1, 1])
    assert torch.equal(vae.decode(z)[0], load(reference / "vae21", form=form).decode(z)[0])


def test_a_decoder_built_on_the_meta_device_loads(family):
    folder, tensors = family
    (video,) = load(folder, device="meta").decode(tensors["z.2"])
    assert torch.equal(video, load(folder).decode(tensors["z.2"])[0])


def graphed_videos(rank, root):
    """For each family: distances of two graphed requests from diffusers, and the number of graphs."""
    results = {}
    for family in FAMILIES:
        torch._dynamo.reset()
        tensors = load_file(root / family / "decoded.safetensors")
        vae = load(root / family)
        counter = CompileCounterWithBackend("aot_eager")
        vae.compile_chunks(
            lambda chunk, counter=counter: torch.compile(
                chunk, backend=counter, fullgraph=True, dynamic=False
            )
        )
        distances = [
            distance(vae.decode(tensors[f"z.{frames}"])[0], tensors[f"video.{frames}"]) for frames in FRAMES
        ]
        results[family] = distances, counter.frame_count, counter.graphs[0].code
    return results


@pytest.fixture(scope="module")
def two_ranks(reference):
    return run_ranks(2, graphed_videos, reference)


@pytest.mark.parametrize("family_name", FAMILIES)
def test_one_graph_serves_first_and_later_chunks_of_every_request(family_name, two_ranks):
    for rank in two_ranks:
        distances, graphs, code = rank[family_name]
        assert graphs == 1
        assert code == two_ranks[0][family_name][2]
        assert max(distances) <= 5e-6  # the bar for graphs of the device's form


def test_the_defaults_are_those_of_diffusers(reference):
    assert WanVAEConfig.from_json_file(reference / "defaults.json") == WanVAEConfig()


@pytest.mark.parametrize("published", [0, 1], ids=["2.1", "2.2"])
def test_published_sizes(published, reference):
    changes, parameters = json.loads((reference / "sizes.json").read_text())[published]
    vae = NeuronAutoencoderKLWan(WanVAEConfig.from_dict(changes), device="meta")
    assert sum(parameter.numel() for parameter in vae.parameters()) == parameters
    z = torch.empty(1, vae.config.z_dim, 1, 4, 4, device="meta")
    assert len(vae.allocate_caches(z)) == 32
    frames, after = vae.decode_chunk(
        z, torch.empty((), dtype=torch.bool, device="meta"), vae.allocate_caches(z)
    )
    pixels = 4 * vae.config.scale_factor_spatial
    assert frames.shape == (1, 3, 4, pixels, pixels)
    assert [cache.shape for cache in after] == [cache.shape for cache in vae.allocate_caches(z)]


@pytest.mark.parametrize("shape", [(1, 16, 0, 4, 4), (1, 15, 1, 4, 4), (16, 1, 4, 4)])
def test_latents_that_do_not_fit_are_refused(shape):
    vae = NeuronAutoencoderKLWan(WanVAEConfig(), device="meta")
    with pytest.raises(InputError, match=r"must be \[B, 16, T >= 1, h, w\]"):
        vae.decode(torch.empty(shape, device="meta"))


def test_another_form_of_result_is_refused():
    vae = NeuronAutoencoderKLWan(WanVAEConfig(), device="meta")
    with pytest.raises(InputError, match="return_dict=True is not supported"):
        vae.decode(torch.empty(1, 16, 1, 4, 4, device="meta"), return_dict=True)
