"""RMSNorm on a NeuronCore: tokens on partitions, so a row's statistics never leave its partition."""

from typing import Any

from omni_neuron.kernels.nki import nisa, nki, nl
from omni_neuron.kernels.tiles import broadcast_row, own_rows


@nki.jit
def rms_norm_kernel(x: Any, weight: Any, eps: float) -> Any:
    """x `[T, H]`, weight `[H]`: x / sqrt(mean(x^2) + eps) * weight, `[T, H]` in the dtype of x."""
    width = x.shape[1]
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    gain = broadcast_row(weight, width)
    for start, rows in own_rows(x.shape[0]):
        tile = nl.ndarray((rows, width), x.dtype)
        nisa.dma_copy(tile, x[nl.ds(start, rows)])
        squares = nl.ndarray((rows, width), nl.float32)
        total = nl.ndarray((rows, 1), nl.float32)
        nisa.activation_reduce(squares, nl.square, tile, nl.add, total)
        inverse = nl.ndarray((rows, 1), nl.float32)
        nisa.tensor_scalar(inverse, total, nl.multiply, 1.0 / width, op1=nl.add, operand1=eps)
        nisa.activation(inverse, nl.rsqrt, inverse)
        result = nl.ndarray((rows, width), x.dtype)
        nisa.scalar_tensor_tensor(result, tile, nl.multiply, inverse, nl.multiply, gain[0:rows])
        nisa.dma_copy(out[nl.ds(start, rows)], result)
    return out
