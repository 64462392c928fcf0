"""The dtypes that callers name."""

import torch

from omni_neuron.runtime.errors import InputError


def dtype_name(dtype: torch.dtype) -> str:
    """`bfloat16` of `torch.bfloat16`."""
    return str(dtype).removeprefix("torch.")


def wants_fp32(result_dtype: torch.dtype | None, dtype: torch.dtype) -> bool:
    """Whether float32 is asked for; InputError where it is neither that nor the inputs' dtype."""
    if result_dtype not in (None, dtype, torch.float32):
        raise InputError(
            f"result_dtype = {result_dtype} must be the inputs' {dtype} or torch.float32: round the result."
        )
    return result_dtype == torch.float32
