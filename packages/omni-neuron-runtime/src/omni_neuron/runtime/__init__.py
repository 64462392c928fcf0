"""The Neuron machine seen from Python.

Importing this package imports nothing heavy; ``adapter`` is the only part that needs torch.
"""
