"""Random numbers. A device's sequences and states are not documented; ours repeat per launch."""

from typing import Any

import numpy as np

from omni_neuron.sim.errors import KernelError
from omni_neuron.sim.execution.core import current_core
from omni_neuron.sim.memory.access import scalar_value
from omni_neuron.sim.memory.tensor import NkiTensor
from omni_neuron.sim.nki.isa.enums import Engine
from omni_neuron.sim.nki.isa.instruction import Work, instruction
from omni_neuron.sim.nki.isa.operands import defined_integers, merge, scalar_or_vector, store, values
from omni_neuron.sim.nki.isa.rules import choose_engine, needs_generation, on_engine, same_elements
from omni_neuron.sim.numerics.formats import uint32
from omni_neuron.sim.numerics.random_sequence import WORDS, RandomSequence


@instruction
def rng(dst: NkiTensor, engine: Engine = Engine.unknown, name: str | None = None) -> Work:
    """Uniform random bits of dst's integer dtype."""
    chosen = choose_engine(engine, (Engine.vector, Engine.gpsimd))
    on_engine(chosen, dst=dst)
    if dst.dtype.kind != "int":
        raise KernelError("dtype", f"dst = {dst!r} must hold integers.")
    limits = np.iinfo(dst.dtype.storage)
    shape = (dst.partitions, dst.columns)
    store(
        dst,
        current_core()
        .random.next()
        .integers(limits.min, limits.max, size=shape, endpoint=True, dtype=np.int64),
    )
    return Work(chosen, (dst,))


@instruction
def rand2(dst: NkiTensor, min: Any = 0.0, max: Any = 1.0, name: str | None = None) -> Work:
    """Uniform numbers between min and max, on trn3."""
    needs_generation(4, "nisa.rand2")
    on_engine(Engine.vector, dst=dst)
    low, low_codes = scalar_or_vector("min", min, dst.partitions)
    high, high_codes = scalar_or_vector("max", max, dst.partitions)
    drawn = current_core().random.next().random((dst.partitions, dst.columns), dtype=np.float32)
    store(dst, low + drawn * (high - low), merge(low_codes, high_codes))
    return Work(Engine.vector, (dst,))


@instruction
def dropout(dst: NkiTensor, data: NkiTensor, prob: Any, name: str | None = None) -> Work:
    """Set elements to zero with probability prob (a number or (P, 1)); the others stay as they are."""
    on_engine(Engine.vector, dst=dst, data=data)
    same_elements(dst, data=data)
    elements, codes = values(data)
    chance, more = scalar_or_vector("prob", prob, data.partitions)
    drawn = current_core().random.next().random(elements.shape, dtype=np.float32)
    store(dst, np.where(drawn < chance, np.float32(0), elements), merge(codes, more))
    return Work(Engine.vector, (dst,), (data,))


@instruction
def set_rng_seed(seed: Any, engine: Engine = Engine.unknown, name: str | None = None) -> Work:
    """Start the sequence anew, from a number, a register or a 1x1 tensor."""
    value = seed if isinstance(seed, int) else scalar_value(seed)
    current_core().random = RandomSequence(value & 0xFFFFFFFF)
    return Work(choose_engine(engine, (Engine.vector, Engine.gpsimd)))


@instruction
def rand_get_state(dst: NkiTensor, engine: Engine = Engine.unknown, name: str | None = None) -> Work:
    """The state of the sequence, for rand_set_state: at least 4 words of uint32 in every partition."""
    chosen = choose_engine(engine, (Engine.vector, Engine.gpsimd))
    on_engine(chosen, dst=dst)
    _check_state("dst", dst)
    words = current_core().random.words
    store(dst, np.array([[*words, *[0] * (dst.columns - WORDS)]], np.int64))
    return Work(chosen, (dst,))


@instruction
def rand_set_state(src_seeds: NkiTensor, engine: Engine = Engine.unknown, name: str | None = None) -> Work:
    """Go on from a state; any words are one. Those of the first partition count."""
    chosen = choose_engine(engine, (Engine.vector, Engine.gpsimd))
    on_engine(chosen, src_seeds=src_seeds)
    _check_state("src_seeds", src_seeds)
    current_core().random.words = [int(word) for word in defined_integers("src_seeds", src_seeds)[0, :WORDS]]
    return Work(chosen, (), (src_seeds,))


def _check_state(argument: str, tensor: NkiTensor) -> None:
    if tensor.dtype is not uint32:
        raise KernelError("dtype", f"{argument} = {tensor!r} must be uint32.")
    if tensor.columns < WORDS:
        raise KernelError("shape", f"{argument} = {tensor!r} must hold at least {WORDS} words per partition.")
