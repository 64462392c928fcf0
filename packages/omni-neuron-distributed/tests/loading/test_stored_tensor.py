"""Tensors found in a file's header and read without the library, as the library reads them."""

import os

import pytest
import torch
from safetensors.torch import save_file

from omni_neuron.distributed.errors import CheckpointError
from omni_neuron.distributed.loading.stored_tensor import DTYPES, read_header, read_into


@pytest.mark.parametrize("kind", DTYPES)
def test_every_dtype_and_offset_is_as_the_library_wrote_it(tmp_path, kind):
    values = torch.arange(24, dtype=torch.uint8).reshape(4, 6).to(DTYPES[kind])
    tensors = {"a": torch.ones(3, dtype=torch.uint8), "b": values, "c": values[1:2, :5].clone()}
    save_file(tensors, tmp_path / "f.safetensors", metadata={"format": "pt"})
    header = read_header(tmp_path / "f.safetensors")
    assert header.keys() == tensors.keys()
    descriptor = os.open(tmp_path / "f.safetensors", os.O_RDONLY)
    for key, tensor in header.items():
        assert (tensor.dtype, tensor.shape) == (tensors[key].dtype, tensors[key].shape)
        assert tensor.size == tensors[key].nbytes
        memory = torch.empty(tensor.shape, dtype=tensor.dtype)
        read_into(descriptor, tensor, tensor.offset, memory)
        assert torch.equal(memory.view(torch.uint8), tensors[key].view(torch.uint8))
    os.close(descriptor)


def test_a_file_that_shrinks_or_fails_while_it_is_read_is_named(tmp_path):
    file = tmp_path / "f.safetensors"
    save_file({"weight": torch.zeros(1000)}, file)
    tensor = read_header(file)["weight"]
    os.truncate(file, tensor.offset + 100)
    descriptor = os.open(file, os.O_RDONLY)
    with pytest.raises(CheckpointError) as caught:
        read_into(descriptor, tensor, tensor.offset, torch.empty(1000))
    os.close(descriptor)
    assert str(caught.value) == (
        f"Checkpoint file {file} ends at byte {tensor.offset + 100}, inside weight: "
        "fetch the checkpoint again."
    )
    read, write = os.pipe()
    with pytest.raises(CheckpointError, match=rf"{file} cannot be read at byte .* \(Illegal seek\)"):
        read_into(read, tensor, tensor.offset, torch.empty(1000))
    os.close(read)
    os.close(write)
