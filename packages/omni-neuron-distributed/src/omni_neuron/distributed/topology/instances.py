"""The machines we know, with the figures that AWS publishes for them.

Bandwidth per chip counts both directions of all its links: 1,024 GB/s over four links of a trn2 chip are
128 GB/s per link and direction.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from difflib import get_close_matches

from omni_neuron.distributed.errors import LayoutError
from omni_neuron.distributed.topology.topology import Fabric, Topology

_UNJUDGED = "No rule for its replica groups is published: every group is taken to route."


def _trn2(lnc: int) -> Topology:
    return Topology(
        name="trn2.48xlarge",
        target="trn2",
        lnc=lnc,
        fabric=Fabric.TORUS,
        shape=(4, 4),
        cores_per_chip=8 // lnc,
        hbm_gb_per_core=96 * lnc / 8,
        axis_gb_s=(128.0, 128.0),
        link_source="Neuron documentation, trn2-arch: NeuronLink-v3, 1,024 GB/s per chip inside an instance",
        torus_rule=True,
        caution="Users report worlds of 8 ranks on two chips that failed with groups that pass the rule.",
    )


def _trn2_ultraserver(lnc: int) -> Topology:
    return Topology(
        name="trn2-ultraserver",
        target="trn2",
        lnc=lnc,
        fabric=Fabric.TORUS,
        shape=(4, 4, 4),
        cores_per_chip=8 // lnc,
        hbm_gb_per_core=96 * lnc / 8,
        axis_gb_s=(64.0, 128.0, 128.0),
        link_source="Neuron documentation, trn2-arch: chips of one coordinate of four instances form a ring "
        "with 256 GB/s per chip, beside 1,024 GB/s per chip inside an instance",
        torus_rule=True,
        caution="The rule for replica groups is published for one instance and extended to a third axis.",
    )


def _trn3(lnc: int) -> Topology:
    return Topology(
        name="trn3",
        target="trn3",
        lnc=lnc,
        fabric=Fabric.SWITCH,
        shape=(16,),
        cores_per_chip=8 // lnc,
        hbm_gb_per_core=144 * lnc / 8,
        axis_gb_s=(1024.0,),
        link_source="Neuron documentation, trn3-arch: NeuronLink-v4, 2,048 GB/s per chip; one 16-chip server "
        "of an UltraServer Gen1",
        caution="Strided groups are excluded from a published test on plain Trn3: that a switch routes every "
        "group is likely and not proven.",
    )


def _trn1(lnc: int) -> Topology:
    return Topology(
        name="trn1.32xlarge",
        target="trn1",
        lnc=lnc,
        fabric=Fabric.TORUS,
        shape=(4, 4),
        cores_per_chip=2,
        hbm_gb_per_core=16.0,
        axis_gb_s=(48.0, 48.0),
        link_source="Neuron documentation, trn1-arch: NeuronLink-v2, 384 GB/s per chip",
        caution=_UNJUDGED,
    )


def _inf2(lnc: int) -> Topology:
    return Topology(
        name="inf2.48xlarge",
        target="inf2",
        lnc=lnc,
        fabric=Fabric.TORUS,
        shape=(12,),
        cores_per_chip=2,
        hbm_gb_per_core=16.0,
        axis_gb_s=(48.0,),
        link_source="Neuron documentation, inf2-arch: NeuronLink-v2, 192 GB/s per chip, 12 chips in a ring",
        caution=_UNJUDGED,
    )


def _cpu(lnc: int) -> Topology:
    return Topology(
        name="cpu",
        target="cpu",
        lnc=lnc,
        fabric=Fabric.HOST,
        shape=(1,),
        cores_per_chip=256,
        hbm_gb_per_core=math.inf,
        axis_gb_s=(math.inf,),
        link_source="one host: neither its memory nor its links are modelled",
    )


# Builder and the physical cores that may make a logical one, the default first.
INSTANCES: dict[str, tuple[Callable[[int], Topology], tuple[int, ...]]] = {
    "trn2.48xlarge": (_trn2, (2, 1)),
    "trn2-ultraserver": (_trn2_ultraserver, (2, 1)),
    "trn3": (_trn3, (2, 1)),
    "trn1.32xlarge": (_trn1, (1,)),
    "inf2.48xlarge": (_inf2, (1,)),
    "cpu": (_cpu, (1,)),
}


def instance(name: str, lnc: int | None = None) -> Topology:
    """The topology of an instance.

    Args:
        name: one of ``INSTANCES``.
        lnc: physical cores per logical core; left out, 2 where the chip can join cores and else 1.

    Raises:
        LayoutError: an unknown name, or an ``lnc`` that its chips do not have.
    """
    if name not in INSTANCES:
        (nearest,) = get_close_matches(name, INSTANCES, 1, 0.0)
        raise LayoutError(
            f"instance={name!r} must be one of {', '.join(INSTANCES)}: the nearest name is {nearest}."
        )
    build, choices = INSTANCES[name]
    if lnc is not None and lnc not in choices:
        allowed = " or ".join(map(str, sorted(choices)))
        raise LayoutError(f"lnc={lnc} of {name} must be {allowed}.")
    return build(choices[0] if lnc is None else lnc)
