"""The environment variables that the simulator reads, with the names and meanings of the Neuron SDK."""

import os
from typing import NamedTuple

from omni_neuron.sim.machine import Generation


class Variable(NamedTuple):
    """What the documentation says of one variable."""

    name: str
    rule: str
    default: str
    meaning: str


TARGET = "NEURON_PLATFORM_TARGET_OVERRIDE"
PRECISE = "NKI_PRECISE_FP"
STOCHASTIC = "NEURON_RT_STOCHASTIC_ROUNDING_EN"
PE_TRANSPOSE = "NKI_DMA_TRANSPOSE_AS_PE_TRANSPOSE"
VARIABLES = (
    Variable(
        TARGET,
        "trn1, inf2, trn2, trn3, gen2, gen3 or gen4",
        "trn2",
        "The machine to simulate where a launch names none.",
    ),
    Variable(
        PRECISE,
        "0 or 1",
        "1",
        "1 rounds every stored value to its dtype; 0 keeps floats below 32 bits in fp32.",
    ),
    Variable(
        STOCHASTIC,
        "0 or 1",
        "0",
        "1 lets the engines round results of 8 and 16 bits up or down by chance, right on average.",
    ),
    Variable(
        PE_TRANSPOSE,
        "0 or 1",
        "0",
        "1 keeps a PSUM bank for DMA transposes on the PE: nl.tile_size.psum_num_banks is 7.",
    ),
)
_TARGETS: dict[str, Generation] = {
    "trn1": "trn1", "inf2": "trn1", "gen2": "trn1", "trn2": "trn2", "gen3": "trn2", "trn3": "trn3", "gen4":
    "trn3",
}  # fmt: skip


def as_target(name: str, source: str = "target") -> Generation:
    """A generation by any of its names. ValueError, which names the source, for others."""
    if name not in _TARGETS:
        raise ValueError(f"{source} is {name!r}: use one of {', '.join(_TARGETS)}.")
    return _TARGETS[name]


def target() -> Generation:
    """`NEURON_PLATFORM_TARGET_OVERRIDE`: the machine where a launch names none; trn2 when unset."""
    return as_target(os.environ.get(TARGET) or "trn2", TARGET)


def precise() -> bool:
    """`NKI_PRECISE_FP`: whether floats below 32 bits are rounded as they are stored; True when unset."""
    return _switch(PRECISE, "1")


def stochastic_rounding() -> bool:
    """`NEURON_RT_STOCHASTIC_ROUNDING_EN`: whether engines round by chance; False when unset."""
    return _switch(STOCHASTIC, "0")


def transposes_on_pe() -> bool:
    """`NKI_DMA_TRANSPOSE_AS_PE_TRANSPOSE`: whether kernels leave a PSUM bank for that; False when unset."""
    return _switch(PE_TRANSPOSE, "0")


def _switch(name: str, default: str) -> bool:
    text = os.environ.get(name) or default
    if text not in ("0", "1"):
        raise ValueError(f"{name} is {text!r}: use 0 or 1.")
    return text == "1"
