"""Attention for vLLM-Omni's role-aware `Attention` layer on Neuron and on the CPU."""

from __future__ import annotations

from typing import Any

import torch
from vllm_omni.diffusion.attention.backends.abstract import AttentionMetadata
from vllm_omni.diffusion.attention.backends.sdpa import SDPABackend, SDPAImpl

from omni_neuron.kernels.attention import explicit_attention, token_major_attention
from omni_neuron.kernels.gate import can_run_kernel
from omni_neuron.platform.attention_choice import MAX_HEAD_SIZE
from omni_neuron.runtime.errors import InputError


class NeuronSDPABackend(SDPABackend):
    """Scaled dot-product attention, softmax in the form that the device can compile."""

    @staticmethod
    def get_name() -> str:
        return "SDPA"

    @staticmethod
    def get_supported_head_sizes() -> list[int]:
        return list(range(1, MAX_HEAD_SIZE + 1))

    @staticmethod
    def get_impl_cls() -> type[SDPAImpl]:
        return NeuronSDPAImpl


class NeuronSDPAImpl(SDPAImpl):
    """vLLM-Omni's SDPA with the mask broadcast over keys; explicit softmax where a device needs it.

    Masked SDPA does not legalise in the native Neuron compiler, so on a device a masked call takes the form
    of `NeuronFlashImpl`.
    """

    always_explicit = False

    def __init__(self, *args: Any, backend_kwargs: dict[str, Any] | None = None, **kwargs: Any) -> None:
        if backend_kwargs:
            raise InputError(
                f"attention backend options {sorted(backend_kwargs)} have no effect on Neuron: remove them."
            )
        super().__init__(*args, **kwargs)

    def forward(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        attn_metadata: AttentionMetadata | None = None,
    ) -> torch.Tensor:
        """Attend `[B, Sq, H, D]` to `[B, Sk, H, D]`.

        The metadata's mask is bool `[B, Sk]`, True where a key counts; the result has the query's dtype.
        """
        mask = None if attn_metadata is None else attn_metadata.attn_mask
        if self.always_explicit or (mask is not None and query.device.type != "cpu"):
            return explicit_attention(query, key, value, mask, scale=self.softmax_scale)
        return self._forward_impl(query, key, value, attn_metadata, mask_mode="broadcast_k")


class NeuronFlashBackend(NeuronSDPABackend):
    """The kernel of flash attention where it can run, else what it computes, in plain operations."""

    @staticmethod
    def get_name() -> str:
        return "FLASH_ATTN"

    @staticmethod
    def get_impl_cls() -> type[SDPAImpl]:
        return NeuronFlashImpl


class NeuronFlashImpl(NeuronSDPAImpl):
    """The kernels package's attention, on every device.

    Without a mask the kernel computes it where one can run: on a device, and in CPU mode in the interpreter.
    """

    always_explicit = True

    def forward(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        attn_metadata: AttentionMetadata | None = None,
    ) -> torch.Tensor:
        """As `NeuronSDPAImpl.forward`."""
        masked = attn_metadata is not None and attn_metadata.attn_mask is not None
        if can_run_kernel(query) and not masked:
            return token_major_attention(query, key, value, self.softmax_scale)
        return super().forward(query, key, value, attn_metadata)
