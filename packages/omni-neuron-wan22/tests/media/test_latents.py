"""Latents on disk."""

import pytest
import torch
from safetensors.torch import load_file

from omni_neuron.runtime.errors import InputError
from omni_neuron.wan22.media.latents import check_latents_path, write_latents


def test_the_tensor_comes_back_under_its_key(tmp_path):
    latents = torch.randn(16, 5, 8, 8)
    path = write_latents(tmp_path / "out.safetensors", latents)
    (key, tensor), *others = load_file(path).items()
    assert (key, others) == ("latents", [])
    assert torch.equal(tensor, latents)


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = write_latents(tmp_path / "out.safetensors", torch.zeros(2))
    before = path.read_bytes()
    with pytest.raises(Exception, match="non contiguous"):
        write_latents(path, torch.zeros(2, 3).T)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["out.safetensors"]


@pytest.mark.parametrize("name", ["out", "out.pt", "out.mp4"])
def test_another_suffix(name):
    with pytest.raises(InputError, match=r"must end in \.safetensors"):
        check_latents_path(name)
