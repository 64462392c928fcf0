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
)
_TARGETS: dict[str, Generation] = {
    "trn1": "trn1", "inf2": "trn1", "gen2": "trn1", "trn2": "trn2", "gen3": "trn2", "trn3": "trn3", "gen4":
    "trn3",
}  # fmt: skip


def as_target(name: str) -> Generation:
    """A generation by any of its names. ValueError for others."""
    if name not in _TARGETS:
        raise ValueError(f"target is {name!r}: use one of {', '.join(_TARGETS)}.")
    return _TARGETS[name]


def target() -> Generation:
    """`NEURON_PLATFORM_TARGET_OVERRIDE`: the machine where a launch names none; trn2 when unset."""
    return as_target(os.environ.get(TARGET) or "trn2")


def precise() -> bool:
    """`NKI_PRECISE_FP`: whether floats below 32 bits are rounded as they are stored; True when unset."""
    text = os.environ.get(PRECISE) or "1"
    if text not in ("0", "1"):
        raise ValueError(f"{PRECISE} is {text!r}: use 0 or 1.")
    return text == "1"
