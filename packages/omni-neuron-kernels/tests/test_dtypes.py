import pytest
import torch

from omni_neuron.kernels.dtypes import dtype_name, wants_fp32
from omni_neuron.runtime.errors import InputError


def test_a_dtype_is_named_without_its_library() -> None:
    assert dtype_name(torch.bfloat16) == "bfloat16"


@pytest.mark.parametrize(
    ("result", "dtype", "wanted"),
    [
        (None, torch.bfloat16, False),
        (torch.bfloat16, torch.bfloat16, False),
        (torch.float32, torch.bfloat16, True),
        (torch.float32, torch.float32, True),
    ],
)
def test_results_have_the_inputs_dtype_or_float32(
    result: torch.dtype | None, dtype: torch.dtype, wanted: bool
) -> None:
    assert wants_fp32(result, dtype) is wanted


def test_another_dtype_is_refused() -> None:
    with pytest.raises(InputError, match=r"float16 must be the inputs' torch.bfloat16 or torch.float32"):
        wants_fp32(torch.float16, torch.bfloat16)
