"""Which key fills which parameter; what is wrong with a checkpoint is told whole."""

from pathlib import Path

import pytest
import torch
from torch import nn

from omni_neuron.distributed.errors import CheckpointError
from omni_neuron.distributed.loading.checkpoint_folder import Checkpoint
from omni_neuron.distributed.loading.matching import match_keys, wanted_keys
from omni_neuron.distributed.loading.stored_tensor import StoredTensor
from omni_neuron.runtime.errors import InputError

FOLDER = Path("folder")


def checkpoint(**tensors):
    """A checkpoint by headers alone: key=(shape, kind)."""
    stored = {key: StoredTensor(FOLDER / "f", key, kind, shape, 0) for key, (shape, kind) in tensors.items()}
    return Checkpoint(FOLDER, stored)


def parameters(**dtypes):
    return {
        name: nn.Parameter(torch.empty(2, dtype=dtype, device="meta"), requires_grad=False)
        for name, dtype in dtypes.items()
    }


def match(found, wanted, aliases=None, ignore=()):
    keys = wanted_keys(wanted, {})
    matched = match_keys("Model", found, wanted, keys, aliases or {}, ignore)
    return {name: [tensor.key for tensor in tensors] for name, tensors in matched.items()}


def test_keys_are_found_by_name_or_by_an_alternative_and_the_first_is_read():
    wanted = parameters(a=torch.float32, b=torch.bfloat16)
    found = checkpoint(a=((2,), "F32"), other=((2,), "F16"), third=((2,), "F16"), lora=((9,), "F64"))
    matched = match(found, wanted, {"b": ("third", "other")}, ["lo"])
    assert matched == {"a": ["a"], "b": ["third"]}


@pytest.mark.parametrize(
    ("kind", "dtype", "fits"),
    [
        ("F64", torch.bfloat16, True),
        ("I64", torch.int32, True),
        ("I8", torch.int8, True),
        ("I32", torch.float32, False),
        ("BF16", torch.int8, False),
        ("F8_E4M3", torch.bfloat16, False),
        ("F8_E4M3", torch.float8_e5m2, False),
        ("F8_E5M2", torch.float8_e5m2, True),
        ("F4", torch.bfloat16, False),
    ],
)
def test_what_may_be_cast(kind, dtype, fits):
    found, wanted = checkpoint(a=((2,), kind)), parameters(a=dtype)
    if fits:
        assert match(found, wanted) == {"a": ["a"]}
        return
    with pytest.raises(CheckpointError) as caught:
        match(found, wanted)
    assert caught.value.misfit == (f"a holds {kind} for a parameter of {dtype}",)


def test_everything_wrong_is_in_one_message():
    wanted = parameters(a=torch.float32, b=torch.float32, c=torch.float32)
    found = checkpoint(a=((3,), "F32"), x=((2,), "F32"), y=((2,), "F32"))
    with pytest.raises(CheckpointError) as caught:
        match(found, wanted, {"c": ("d",)})
    assert str(caught.value) == (
        "The tensors of checkpoint folder must be those of Model, but there are 2 missing (b, c or d) and "
        "2 extra (x, y) and 1 mis-shaped (a is [3] instead of [2]): "
        "use a checkpoint that belongs to this configuration."
    )


def test_a_key_fills_one_parameter():
    wanted = parameters(a=torch.float32, b=torch.float32)
    with pytest.raises(InputError, match="key_map uses the checkpoint key k for a and for b"):
        wanted_keys(wanted, {"a": ["k"], "b": ["k"]})
    with pytest.raises(InputError, match="aliases use the checkpoint key a for a and for b"):
        match(checkpoint(a=((2,), "F32")), wanted, {"b": ("a",)})


def test_an_alternative_for_a_key_that_no_parameter_has_is_refused():
    wanted = parameters(a=torch.float32)
    with pytest.raises(InputError, match="aliases name b, which must be checkpoint keys of a parameter"):
        match(checkpoint(a=((2,), "F32")), wanted, {"a": ("c",), "b": ("a",)})
