"""Verbs of the `omni-neuron` command that this package brings."""
