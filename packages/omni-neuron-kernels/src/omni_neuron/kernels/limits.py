"""Limits of a NeuronCore as plain numbers: shape gates and kernels share them, and gates know no NKI."""

import torch

PARTITIONS = 128  # of SBUF and PSUM; rows and columns of the PE
BANKS = 8  # of PSUM
BANK_BYTES = 2048  # of one partition of a bank
BANK_COLUMNS = 512  # fp32 sums of a bank, and moving columns of one matmul
SBUF_BYTES = 208 * 1024  # of one partition, what a kernel may use on trn2
DTYPES = (torch.bfloat16, torch.float32)  # of what kernels load and store


def ceil_div(length: int, size: int) -> int:
    """How many pieces of `size` cover `length`, which is not negative; the last one may be ragged."""
    return (length + size - 1) // size
