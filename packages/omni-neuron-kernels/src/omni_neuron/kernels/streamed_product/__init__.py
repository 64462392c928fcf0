"""A product whose weight is streamed from HBM past inputs in SBUF: what several kernels end with."""
