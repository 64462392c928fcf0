"""vLLM-Omni's role-aware attention, handed to models that know nothing of it."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from vllm_omni.diffusion.attention.backends.abstract import AttentionMetadata
from vllm_omni.diffusion.attention.layer import Attention

from omni_neuron.runtime.errors import InputError

ROLES = ("self", "cross", "cross_image")
# A role of its own that falls back to the setting of "cross".
_CATEGORIES = {"cross_image": "cross"}


class EngineAttention(nn.Module):
    """One attention site, on the backend that the engine's configuration chooses for its role.

    The class is the attention factory that the pipelines give to the models.
    Sequence parallelism is the model's own: it hands in gathered keys and values.
    """

    def __init__(self, role: str, num_heads: int, head_dim: int) -> None:
        super().__init__()
        self.attention = Attention(
            num_heads=num_heads,
            head_size=head_dim,
            causal=False,
            softmax_scale=head_dim**-0.5,
            role=role,
            role_category=_CATEGORIES.get(role),
            qkv_layout="BSND",
            skip_sequence_parallel=True,
        )

    def forward(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        key_mask: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Attend `[B, Sq, H, D]` to `[B, Sk, H, D]`; `key_mask` is `[B, Sk]`, True where a key counts."""
        metadata = None if key_mask is None else AttentionMetadata(attn_mask=key_mask)
        output: torch.Tensor = self.attention(query, key, value, metadata)
        return output


def check_roles(attention: Any) -> None:
    """Refuse a backend for a role that no attention site has.

    Args:
        attention: the engine's configuration of attention, or None.

    Raises:
        InputError: names the role and those that there are.
    """
    for role in () if attention is None else attention.per_role:
        if role not in ROLES:
            raise InputError(
                f"diffusion_attention_config.per_role has the role {role!r}, but the roles are "
                f"{', '.join(ROLES)}; use one of them, or leave it out."
            )
