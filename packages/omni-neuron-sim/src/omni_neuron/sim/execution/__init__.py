"""Running kernels: cores, ranks, their meetings, and the launch."""
