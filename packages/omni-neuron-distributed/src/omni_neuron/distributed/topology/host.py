"""The topology of the machine that this process computes on."""

from __future__ import annotations

from omni_neuron.distributed.topology.instances import INSTANCES, instance
from omni_neuron.distributed.topology.topology import Topology
from omni_neuron.runtime import envs
from omni_neuron.runtime.adapter import get_adapter
from omni_neuron.runtime.targets import family

_BY_FAMILY = {
    "trn2": "trn2.48xlarge",
    "trn3": "trn3",
    "trn1": "trn1.32xlarge",
    "trn1n": "trn1.32xlarge",
    "inf2": "inf2.48xlarge",
}


def host_topology() -> Topology:
    """One instance of the compile target's family, with the logical cores of ``NEURON_LOGICAL_NC_CONFIG``.

    In CPU mode it is ``cpu``, unless ``NEURON_PLATFORM_TARGET_OVERRIDE`` names the machine to act as: ranks
    are then placed, and layouts refused, as they would be there. The instances of an UltraServer count as one
    machine each. An unknown target is ``cpu`` too: nothing is known that could be checked.

    Raises:
        RuntimeError: the target of the hardware cannot be found out.
    """
    known = family(get_adapter().platform_target())
    name = _BY_FAMILY[known] if known else "cpu"
    _, choices = INSTANCES[name]
    lnc = envs.logical_nc_config()
    return instance(name, lnc if lnc in choices else None)
