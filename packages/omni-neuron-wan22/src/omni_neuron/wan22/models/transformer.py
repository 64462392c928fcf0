"""The Wan diffusion transformer (Wan: Open and Advanced Large-Scale Video Generative Models, 2025)."""

from __future__ import annotations

import math
from typing import Any

import torch
from einops import rearrange
from torch import nn

from omni_neuron.distributed.context_parallel import gather_sequence, sequence_key_mask, split_sequence
from omni_neuron.distributed.errors import shard_size
from omni_neuron.distributed.groups import ParallelContext
from omni_neuron.runtime.errors import InputError
from omni_neuron.wan22.models.attention import AttentionFactory, sdpa_attention
from omni_neuron.wan22.models.block import WanTransformerBlock
from omni_neuron.wan22.models.config import TEXT_LENGTH, WanConfig
from omni_neuron.wan22.models.embeddings import ConditionEmbedder, PatchEmbedding, ReplicatedLinear
from omni_neuron.wan22.models.norms import modulated_layer_norm
from omni_neuron.wan22.models.rope import Grid, RotaryTables


class WanTransformer3DModel(nn.Module):
    """Predicts the flow of noisy video latents, given time and text.

    Args:
        config: geometry.
        parallel: groups of this rank; heads and inner features are cut over ``tp``, tokens over ``cp``.
        attention: builds the attention of each role (see ``AttentionFactory``).
        dtype: of weights and stream. As in diffusers the time perceptron, the modulation tables and the
            affine norms stay float32, and norms, modulation and residuals compute in float32.
        device: of the parameters, whose values are undefined until a checkpoint is loaded.

    Parameters carry diffusers' names, apart from the joint projections of :meth:`key_map`.

    Raises:
        ValueError: ``tp`` does not divide the heads or the inner features of the feed-forward.
    """

    def __init__(
        self,
        config: WanConfig,
        parallel: ParallelContext | None = None,
        attention: AttentionFactory = sdpa_attention,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str | None = None,
    ) -> None:
        super().__init__()
        parallel = parallel or ParallelContext.single_rank()
        shard_size("num_attention_heads", config.num_attention_heads, parallel.tp.size)
        shard_size("ffn_dim", config.ffn_dim, parallel.tp.size)
        self.config = config
        self.parallel = parallel
        self.rotary_tables = RotaryTables(config.attention_head_dim, config.rope_max_seq_len, parallel.cp)
        dim = config.inner_dim
        self.patch_embedding = PatchEmbedding(config, dtype=dtype, device=device)
        self.condition_embedder = ConditionEmbedder(config, dtype=dtype, device=device)
        self.blocks = nn.ModuleList(
            WanTransformerBlock(config, parallel, attention, dtype=dtype, device=device)
            for _ in range(config.num_layers)
        )
        self.scale_shift_table = nn.Parameter(torch.empty(1, 2, dim, dtype=torch.float32, device=device))
        self.proj_out = ReplicatedLinear(
            dim, config.out_channels * config.patch_volume, dtype=dtype, device=device
        )

    @property
    def dtype(self) -> torch.dtype:
        """Dtype of the stream and of the result."""
        return self.patch_embedding.weight.dtype

    def forward(
        self,
        hidden_states: torch.Tensor,
        timestep: torch.Tensor,
        encoder_hidden_states: torch.Tensor,
        encoder_hidden_states_image: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """The flow at ``timestep``, whole on every rank.

        Args:
            hidden_states: latents ``[B, Cin, T, H, W]``.
            timestep: in 0..1000, ``[B]``, or ``[B, S]`` with one value per token.
            encoder_hidden_states: ``[B, 512, text_dim]``, rows after the prompt's end being zeros.
            encoder_hidden_states_image: ``[B, n, image_dim]`` for a model with the image branch.

        Returns:
            ``[B, Cout, T, H, W]`` in the model's dtype.

        Raises:
            InputError: an input's shape does not fit the model.
        """
        grid = self._check_shapes(hidden_states, timestep, encoder_hidden_states, encoder_hidden_states_image)
        length, cp, device = math.prod(grid), self.parallel.cp, hidden_states.device
        pt, ph, pw = self.config.patch_size
        patches = rearrange(
            hidden_states.to(self.dtype),
            "b c (t pt) (h ph) (w pw) -> b (t h w) (c pt ph pw)",
            pt=pt,
            ph=ph,
            pw=pw,
        )
        cos, sin = self.rotary_tables(grid, device)
        tokens = self.forward_tokens(
            split_sequence(patches, cp, 1),
            cos,
            sin,
            split_sequence(timestep, cp, 1) if timestep.ndim == 2 else timestep,
            encoder_hidden_states.to(self.dtype),
            sequence_key_mask(length, cp, device),
            None if encoder_hidden_states_image is None else encoder_hidden_states_image.to(self.dtype),
        )
        t, h, w = grid
        return rearrange(
            gather_sequence(tokens, cp, 1, length),
            "b (t h w) (pt ph pw c) -> b c (t pt) (h ph) (w pw)",
            t=t,
            h=h,
            w=w,
            pt=pt,
            ph=ph,
            pw=pw,
        )

    def forward_tokens(
        self,
        patches: torch.Tensor,
        rope_cos: torch.Tensor,
        rope_sin: torch.Tensor,
        timestep: torch.Tensor,
        text: torch.Tensor,
        key_mask: torch.Tensor | None,
        image: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """This rank's tokens through all blocks.

        Whatever differs between ranks is an argument, so that one graph serves all of them.

        Args:
            patches: ``[B, S/cp, Cin*pt*ph*pw]``.
            rope_cos, rope_sin: float32 ``[1, S/cp, 1, D/2]``.
            timestep: ``[B]`` or ``[B, S/cp]``.
            text: ``[B, 512, text_dim]``.
            key_mask: bool ``[S_padded]`` over the whole sequence, None when nothing is padded.
            image: ``[B, n, image_dim]`` or None.

        Returns:
            ``[B, S/cp, pt*ph*pw*Cout]``.
        """
        x = self.patch_embedding(patches)
        embedding, modulation = self.condition_embedder.embed_time(timestep, x.dtype)
        context = self.condition_embedder.embed_context(text, image)
        for block in self.blocks:
            x = block(x, context, modulation, rope_cos, rope_sin, key_mask)
        shift, scale = (embedding.float() + self.scale_shift_table[:, index] for index in range(2))
        out: torch.Tensor = self.proj_out(modulated_layer_norm(x, shift, scale, self.config.eps))
        return out

    def key_map(self) -> dict[str, tuple[str, ...]]:
        """Checkpoint keys of each joint projection, for ``load_sharded``."""
        joint = {"attn1.to_qkv": ("attn1", "qkv"), "attn2.to_kv": ("attn2", "kv")}
        return {
            f"blocks.{layer}.{name}.{kind}": tuple(
                f"blocks.{layer}.{attn}.to_{part}.{kind}" for part in parts
            )
            for layer in range(self.config.num_layers)
            for name, (attn, parts) in joint.items()
            for kind in ("weight", "bias")
        }

    @property
    def ignored_keys(self) -> tuple[str, ...]:
        """Checkpoint keys without an effect: Wan2.1 files carry a norm that no projection feeds."""
        return tuple(f"blocks.{layer}.attn2.norm_added_q." for layer in range(self.config.num_layers))

    @property
    def load_options(self) -> dict[str, Any]:
        """What ``load_sharded`` and ``check_sharded`` need to know of this model."""
        return {"key_map": self.key_map(), "ignore": self.ignored_keys}

    def _check_shapes(
        self, latents: torch.Tensor, timestep: torch.Tensor, text: torch.Tensor, image: torch.Tensor | None
    ) -> Grid:
        """Tokens along time, height and width."""
        config = self.config
        batch, channels, *sizes = latents.shape
        if len(sizes) != 3 or channels != config.in_channels:
            raise InputError(
                f"hidden_states of shape {tuple(latents.shape)} must be [B, {config.in_channels}, T, H, W]."
            )
        if any(size % patch for size, patch in zip(sizes, config.patch_size, strict=True)):
            raise InputError(
                f"latent size {tuple(sizes)} must be a multiple of patch_size={config.patch_size}: "
                "change height, width or frames."
            )
        t, h, w = (size // patch for size, patch in zip(sizes, config.patch_size, strict=True))
        if tuple(timestep.shape) not in ((batch,), (batch, t * h * w)):
            raise InputError(
                f"timestep of shape {tuple(timestep.shape)} must be [{batch}] or [{batch}, {t * h * w}]."
            )
        if text.ndim != 3 or text.shape[0] != batch or text.shape[2] != config.text_dim:
            raise InputError(
                f"encoder_hidden_states of shape {tuple(text.shape)} must be "
                f"[{batch}, {TEXT_LENGTH}, {config.text_dim}]."
            )
        if config.image_dim is not None and text.shape[1] != TEXT_LENGTH:
            raise InputError(
                f"encoder_hidden_states has {text.shape[1]} rows but must have {TEXT_LENGTH} beside an "
                "image: pad with zero rows."
            )
        if (image is None) != (config.image_dim is None):
            raise InputError(
                f"encoder_hidden_states_image must be given exactly when the model has an image branch "
                f"(image_dim={config.image_dim})."
            )
        return t, h, w
