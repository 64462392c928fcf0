"""The projection of tokens to queries, keys and values, with RMSNorm across ranks and RoPE."""

from omni_neuron.kernels.qkv.halves import fused_to_halves, neighbours_to_halves
from omni_neuron.kernels.qkv.operator import qkv

__all__ = ["fused_to_halves", "neighbours_to_halves", "qkv"]
