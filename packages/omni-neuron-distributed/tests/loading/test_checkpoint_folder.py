"""The folder is opened as diffusers and transformers wrote it, or refused in one sentence."""

import json

import pytest
import torch
from safetensors.torch import save_file

from omni_neuron.distributed.errors import CheckpointError
from omni_neuron.distributed.loading.checkpoint_folder import FILE_NAMES, read_checkpoint
from omni_neuron.distributed.loading.descriptors import Descriptors
from omni_neuron.distributed.loading.stored_tensor import read_into

DIFFUSERS, TRANSFORMERS = FILE_NAMES


def write_shards(folder, name, shards, weight_map=None):
    names = {}
    for number, tensors in enumerate(shards, 1):
        shard = name.replace(".safetensors", f"-{number:05d}-of-{len(shards):05d}.safetensors")
        save_file(tensors, folder / shard)
        names.update(dict.fromkeys(tensors, shard))
    index = {"metadata": {"total_size": 1}, "weight_map": names if weight_map is None else weight_map}
    (folder / f"{name}.index.json").write_text(json.dumps(index))
    return names


def read(folder):
    found = {}
    for key, tensor in read_checkpoint(folder).tensors.items():
        found[key] = torch.empty(tensor.shape, dtype=tensor.dtype)
        with Descriptors() as files:
            read_into(files[tensor.file], tensor, tensor.offset, found[key])
    return found


def refusal(folder):
    with pytest.raises(CheckpointError) as caught:
        read(folder)
    message = str(caught.value)
    assert message.endswith(".")
    assert "\n" not in message
    return message, caught.value


TENSORS = {"a": torch.arange(6.0).reshape(2, 3), "b": torch.ones(2).bfloat16(), "c": torch.tensor(3.0)}


@pytest.mark.parametrize("name", FILE_NAMES)
@pytest.mark.parametrize("indexed", [False, True])
def test_both_conventions_single_or_indexed(tmp_path, name, indexed):
    if indexed:
        write_shards(tmp_path, name, [{"a": TENSORS["a"]}, {"b": TENSORS["b"], "c": TENSORS["c"]}])
        save_file({"stranger": torch.ones(1)}, tmp_path / "other.safetensors")
    else:
        save_file(TENSORS, tmp_path / name)
    found = read(tmp_path)
    assert found.keys() == TENSORS.keys()
    for key, value in TENSORS.items():
        assert found[key].dtype == value.dtype
        assert torch.equal(found[key], value)


@pytest.mark.parametrize("keep", [0, 4, 60, -1])
def test_a_truncated_file_is_named(tmp_path, keep):
    file = tmp_path / DIFFUSERS
    save_file(TENSORS, file)
    file.write_bytes(file.read_bytes()[:keep])
    message, _ = refusal(tmp_path)
    assert f"Checkpoint file {file} is truncated or not readable as safetensors" in message


def test_a_truncated_shard_is_named(tmp_path):
    names = write_shards(tmp_path, DIFFUSERS, [{"a": TENSORS["a"]}, {"b": TENSORS["b"]}])
    shard = tmp_path / names["b"]
    shard.write_bytes(shard.read_bytes()[:-1])
    assert str(shard) in refusal(tmp_path)[0]


def test_every_absent_shard_is_named(tmp_path):
    names = write_shards(tmp_path, DIFFUSERS, [{key: value} for key, value in TENSORS.items()])
    for key in "ac":
        (tmp_path / names[key]).unlink()
    message, _ = refusal(tmp_path)
    assert f"lacks {names['a']}, {names['c']}, which {DIFFUSERS}.index.json names" in message


def test_an_index_that_disagrees_with_its_shards_is_told_in_full(tmp_path):
    names = write_shards(tmp_path, DIFFUSERS, [{"a": TENSORS["a"]}, {"b": TENSORS["b"], "c": TENSORS["c"]}])
    wrong = {"a": names["a"], "b": names["a"], "gone": names["b"], "lost": names["b"], "c": names["c"]}
    (tmp_path / f"{DIFFUSERS}.index.json").write_text(json.dumps({"weight_map": wrong}))
    message, error = refusal(tmp_path)
    assert error.missing == (f"b in {names['a']}", f"gone in {names['b']}", f"lost in {names['b']}")
    assert error.extra == (f"b in {names['b']}",)
    for item in error.missing + error.extra:
        assert item in message


def test_a_tensor_that_the_index_does_not_name_is_told(tmp_path):
    write_shards(tmp_path, DIFFUSERS, [{"a": TENSORS["a"], "b": TENSORS["b"]}])
    names = {"a": f"{DIFFUSERS.removesuffix('.safetensors')}-00001-of-00001.safetensors"}
    (tmp_path / f"{DIFFUSERS}.index.json").write_text(json.dumps({"weight_map": names}))
    message, error = refusal(tmp_path)
    assert error.missing == ()
    assert error.extra == (f"b in {names['a']}",)
    assert f"it does not name b in {names['a']}: fetch" in message


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "{}",
        '{"weight_map": {}}',
        '{"weight_map": 3}',
        '{"weight_map": {"a": 3}}',
        '{"weight_map": {"a": "../model.safetensors"}}',
    ],
)
def test_an_unusable_index_is_named(tmp_path, text):
    save_file(TENSORS, tmp_path / DIFFUSERS)
    (tmp_path / f"{DIFFUSERS}.index.json").write_text(text)
    assert f"Checkpoint index {tmp_path / DIFFUSERS}.index.json must" in refusal(tmp_path)[0]


def test_a_folder_without_a_checkpoint_says_what_it_holds(tmp_path):
    assert "but holds nothing" in refusal(tmp_path)[0]
    assert "but holds nothing" in refusal(tmp_path / "nowhere")[0]
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "pytorch_model.bin").write_text("")
    message, _ = refusal(tmp_path)
    assert f"must hold {DIFFUSERS} or {TRANSFORMERS} or its .index.json" in message
    assert "but holds config.json, pytorch_model.bin" in message


@pytest.mark.parametrize("name", ["", "..", ".", "../a.safetensors", "/a.safetensors", "a/b", "a" * 300])
def test_an_index_names_files_of_its_own_folder_only(tmp_path, name):
    save_file(TENSORS, tmp_path / "a.safetensors")
    folder = tmp_path / "folder"
    folder.mkdir()
    write_shards(folder, DIFFUSERS, [TENSORS], dict.fromkeys(TENSORS, name))
    assert "must map tensor names to file names of its own folder" in refusal(folder)[0]


def test_an_index_of_brackets_without_end_is_refused(tmp_path):
    (tmp_path / f"{DIFFUSERS}.index.json").write_text("[" * 200_000)
    assert "must be JSON with a weight_map" in refusal(tmp_path)[0]
