import pytest
import torch

from omni_neuron.kernels.shapes import require_dims, require_shape
from omni_neuron.runtime.errors import InputError


def test_none_has_any_shape_and_one_of_several_is_enough() -> None:
    require_shape("bias", None, (3,))
    require_shape("bias", torch.zeros(1, 3), (3,), (1, 3))


def test_an_error_names_what_there_is_and_what_there_must_be() -> None:
    with pytest.raises(InputError) as caught:
        require_shape("bias", torch.zeros(2), (3,), (1, 3))
    assert str(caught.value) == "bias has the shape (2,): beside the others it must be (3,) or (1, 3)."
    with pytest.raises(InputError) as caught:
        require_dims("x", torch.zeros(2), "[T, H]")
    assert str(caught.value) == "x has the shape (2,): it must be [T, H]."
