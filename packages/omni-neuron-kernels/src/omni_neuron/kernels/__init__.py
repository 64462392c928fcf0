"""Kernels for Neuron devices, each with the torch form that runs where the kernel cannot."""
