"""Machines as a layout sees them: chips, the links between them, and the cores that ranks run on."""

from omni_neuron.distributed.topology.host import host_topology
from omni_neuron.distributed.topology.instances import INSTANCES, instance
from omni_neuron.distributed.topology.topology import Fabric, Topology

__all__ = ["INSTANCES", "Fabric", "Topology", "host_topology", "instance"]
