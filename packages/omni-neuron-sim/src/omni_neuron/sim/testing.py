"""Running a few instructions on tiles, for tests of instructions and of parts of kernels."""

from collections.abc import Callable, Sequence
from typing import Any

from omni_neuron.sim.execution.launch import simulate
from omni_neuron.sim.memory.spaces import MemorySpace
from omni_neuron.sim.nki import isa
from omni_neuron.sim.nki.language.creation import allocate
from omni_neuron.sim.numerics.formats import DType, as_dtype


def on_tiles(
    body: Callable[..., Any],
    *arrays: Any,
    shape: Sequence[int],
    dtype: Any,
    outputs: int = 1,
    target: str = "trn2",
    **options: Any,
) -> Any:
    """Bring arrays into SBUF, call `body(dst, ..., *tiles)`, and return the dst tiles.

    Each array becomes a tile of its own shape; there are `outputs` dst tiles of one `shape` and `dtype`,
    or of several where `shape` and `dtype` are lists of that length. `options` go to `simulate`.
    """
    shapes = list(shape) if outputs > 1 else [shape]
    dtypes: list[DType] = [as_dtype(d) for d in dtype] if outputs > 1 else [as_dtype(dtype)]

    def kernel(*inputs: Any) -> Any:
        tiles = [allocate(x.shape, x.dtype, MemorySpace.sbuf) for x in inputs]
        for tile, x in zip(tiles, inputs, strict=True):
            isa.dma_copy(tile, x)
        made = [
            allocate(s, d, MemorySpace.sbuf, name=f"dst{i}")
            for i, (s, d) in enumerate(zip(shapes, dtypes, strict=True))
        ]
        body(*made, *tiles)
        results = [allocate(t.shape, t.dtype, MemorySpace.shared_hbm) for t in made]
        for result, tile in zip(results, made, strict=True):
            isa.dma_copy(result, tile)
        return tuple(results) if outputs > 1 else results[0]

    return simulate(kernel, *arrays, target=target, **options)
