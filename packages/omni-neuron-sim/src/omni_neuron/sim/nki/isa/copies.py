"""Instructions that move elements within a core: copies, fills and the shuffle of partitions."""

from collections.abc import Sequence

import numpy as np

from omni_neuron.sim.errors import KernelError
from omni_neuron.sim.memory.access import write
from omni_neuron.sim.memory.tensor import NkiTensor
from omni_neuron.sim.nki.isa.enums import Engine
from omni_neuron.sim.nki.isa.instruction import Work, instruction
from omni_neuron.sim.nki.isa.operands import (
    element_storage,
    merge,
    scalar_or_vector,
    spread,
    store,
    stored,
    values,
)
from omni_neuron.sim.nki.isa.rules import choose_engine, on_engine, one_in_psum, same_elements
from omni_neuron.sim.numerics.formats import bool_, uint8, uint16, uint32

ON_CHIP = (Engine.vector, Engine.scalar, Engine.gpsimd)
QUADRANT = 32
KEEP = 255


@instruction
def tensor_copy(
    dst: NkiTensor, src: NkiTensor, engine: Engine = Engine.unknown, name: str | None = None
) -> Work:
    """Copy on chip, bit by bit where the dtypes agree and through fp32 where they differ."""
    chosen = choose_engine(engine, ON_CHIP)
    on_engine(chosen, dst=dst, src=src)
    same_elements(dst, src=src)
    if dst.dtype is src.dtype:
        elements, codes = stored(src)
        write(dst, elements, spread(codes, (dst.partitions, dst.columns)))
    else:
        store(dst, *values(src))
    return Work(chosen, (dst,), (src,))


@instruction
def memset(dst: NkiTensor, value: float, engine: Engine = Engine.unknown, name: str | None = None) -> Work:
    """Fill with a constant of dst's kind."""
    chosen = choose_engine(engine, (Engine.vector, Engine.gpsimd))
    on_engine(chosen, dst=dst)
    if not isinstance(value, bool | int | float | np.integer | np.floating):
        raise KernelError("operand", f"value is a {type(value).__name__}, and must be a number.")
    if dst.dtype.is_integer and isinstance(value, float | np.floating):
        raise KernelError(
            "dtype", f"value = {value!r} is a float and dst = {dst!r} holds integers: give an int."
        )
    if dst.dtype.kind == "packed":
        if value != 0:
            raise KernelError("dtype", f"value = {value!r}: packed tensors can only be filled with 0.")
        write(dst, np.zeros(dst.shape, element_storage(dst)))
    else:
        filled = np.int64(value) if dst.dtype.is_integer else np.float32(value)
        store(dst, np.full((1, 1), filled))
    return Work(chosen, (dst,))


@instruction
def tensor_copy_predicated(
    dst: NkiTensor,
    src: NkiTensor | float,
    predicate: NkiTensor,
    reverse_pred: bool = False,
    name: str | None = None,
) -> Work:
    """dst = src where the predicate is not zero (where it is, if reversed); elsewhere dst stays."""
    on_engine(Engine.vector, dst=dst, predicate=predicate)
    if predicate.dtype not in (bool_, uint8, uint16, uint32):
        raise KernelError("dtype", f"predicate = {predicate!r} must be uint8, uint16 or uint32.")
    same_elements(dst, predicate=predicate)
    one_in_psum("src", src, "predicate", predicate)
    chosen, steering = stored(predicate)
    mask = (chosen == 0) if reverse_pred else (chosen != 0)
    if isinstance(src, NkiTensor):
        on_engine(Engine.vector, src=src)
        same_elements(dst, src=src)
        if src.dtype is not dst.dtype:
            raise KernelError("dtype", f"src = {src!r} and dst = {dst!r} must have one dtype.")
        elements, codes = stored(src)
        unknown = merge(codes, steering)
        if steering is not None:
            mask = mask | (steering != 0)
        write(dst, elements, spread(unknown, mask.shape), mask.reshape(dst.shape))
        return Work(Engine.vector, (dst,), (src, predicate, dst))
    value, _ = scalar_or_vector("src", src, dst.partitions)
    store(dst, np.full(mask.shape, value), steering, mask if steering is None else mask | (steering != 0))
    return Work(Engine.vector, (dst,), (predicate, dst))


@instruction
def nc_stream_shuffle(
    dst: NkiTensor, src: NkiTensor, shuffle_mask: Sequence[int], name: str | None = None
) -> Work:
    """Within each quadrant of 32 partitions: dst[32 q + i] = src[32 q + mask[i]]; 255 leaves a row alone.

    A mask may point past the view of src, into the same quadrant of its tensor.
    """
    on_engine(Engine.vector, dst=dst, src=src)
    mask = [int(m) for m in shuffle_mask]
    if len(mask) != QUADRANT or any(m != KEEP and not 0 <= m < QUADRANT for m in mask):
        raise KernelError(
            "shape", f"shuffle_mask = {mask} must be {QUADRANT} numbers below {QUADRANT}, or {KEEP}."
        )
    if dst.dtype is not src.dtype or dst.columns != src.columns:
        raise KernelError(
            "shape", f"dst = {dst!r} and src = {src!r} must have one dtype and equal elements per row."
        )
    whole = _whole_quadrants(src)
    elements, codes = stored(whole)
    elements = elements.copy()  # dst may be the same tile
    for start in range(0, dst.partitions, QUADRANT):
        count = min(QUADRANT, dst.partitions - start)
        for i in range(count):
            if mask[i] == KEEP:
                continue
            row = start + mask[i]
            if row >= whole.partitions:
                raise KernelError(
                    "out-of-range", f"shuffle_mask[{i}] reads partition {row} of src = {src!r}."
                )
            undefined = None if codes is None else codes[row]
            write(dst[start + i], elements[row], spread(undefined, (dst.columns,)))
    return Work(Engine.vector, (dst,), (src,))


def _whole_quadrants(src: NkiTensor) -> NkiTensor:
    """The view of src, grown to the end of its last quadrant or of its tensor."""
    first = src.offset // src.row_elements
    available = src.buffer_.shape[0] - first
    grown = min(-(-src.partitions // QUADRANT) * QUADRANT, available)
    return src.replace([max(grown, src.partitions), *src.shape[1:]], src.strides)
