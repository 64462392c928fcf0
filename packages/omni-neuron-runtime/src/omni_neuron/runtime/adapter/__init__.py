"""One adapter, three variants, for the private members of the Neuron wheels."""

from omni_neuron.runtime.adapter.base import NeuronAdapter, ReplicaGroups
from omni_neuron.runtime.adapter.select import get_adapter

__all__ = ["NeuronAdapter", "ReplicaGroups", "get_adapter"]
