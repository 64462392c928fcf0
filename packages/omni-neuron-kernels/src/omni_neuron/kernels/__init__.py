"""The place for kernels of Neuron devices; so far the torch form of attention, and the gate for kernels."""
