"""NKI kernels of Neuron devices, each with its torch twin, its shape gate and its torch operator."""
