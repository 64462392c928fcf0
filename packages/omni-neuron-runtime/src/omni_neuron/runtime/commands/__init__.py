"""Verbs of the ``omni-neuron`` command that belong to this package."""
