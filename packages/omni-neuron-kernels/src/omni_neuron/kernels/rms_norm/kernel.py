"""RMSNorm on a NeuronCore: tokens on partitions, so a row's statistics never leave its partition."""

from typing import Any

from omni_neuron.kernels.limits import PARTITIONS
from omni_neuron.kernels.nki import nisa, nki, nl
from omni_neuron.kernels.tiles import broadcast_row, own_rows, rotation, staggered, turn

LOAD, STATISTICS, PRODUCT = 0, 1, 2


@nki.jit
def rms_norm_kernel(x: Any, weight: Any, eps: float) -> Any:
    """x `[T, H]`, weight `[H]`: x / sqrt(mean(x^2) + eps) * weight, `[T, H]` in the dtype of x.

    A tile's load, its statistics (Scalar engine) and its product (Vector engine) are issued next to those
    of other tiles, so that the DMAs and both engines work at the same time.
    """
    width = x.shape[1]
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    work = own_rows(x.shape[0])
    squares = nl.ndarray((PARTITIONS, width), nl.float32)
    inverses = rotation(1, nl.float32, len(work))
    tiles = rotation(width, x.dtype, len(work), sets=2, beside=2 * 4 * width)
    results = rotation(width, x.dtype, len(work), sets=2, beside=2 * 4 * width)
    gain: Any = None
    for stage, index in staggered(len(work), 3, len(tiles)):
        start, rows = work[index]
        tile, inverse = turn(tiles, index, rows), turn(inverses, index, rows)
        if stage == LOAD:
            nisa.dma_copy(tile, x[nl.ds(start, rows)])
            if gain is None:
                gain = broadcast_row(weight, 0, width)
        elif stage == STATISTICS:
            nisa.activation_reduce(squares[0:rows], nl.square, tile, nl.add, inverse)
            nisa.activation(inverse, nl.rsqrt, inverse, bias=eps, scale=1.0 / width)
        else:
            result = turn(results, index, rows)
            nisa.scalar_tensor_tensor(result, tile, nl.multiply, inverse, nl.multiply, gain[0:rows])
            nisa.dma_copy(out[nl.ds(start, rows)], result)
    return out
