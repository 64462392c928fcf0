"""Where things stand in PSUM: scores and small products rotate over banks 0 to 3, sums own 4 to 7.

A compiler that rotates all eight banks would now and then give two pairs of scores that follow each other the
same banks, and the tensor engine would wait for the exponential.
"""

from typing import Any

from omni_neuron.kernels.limits import BANK_BYTES, BANK_COLUMNS
from omni_neuron.kernels.nki import nl

COLUMNS = BANK_COLUMNS
SUMS = 4  # first bank of the sums


def in_bank(shape: tuple[int, ...], dtype: Any, bank: int) -> Any:
    """A tile of PSUM that starts at a bank."""
    return nl.ndarray(shape, dtype, buffer=nl.psum, address=(0, bank * BANK_BYTES))
