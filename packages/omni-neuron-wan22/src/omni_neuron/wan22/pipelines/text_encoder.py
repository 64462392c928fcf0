"""From prompts to the padded embeddings that the transformer attends to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from omni_neuron.runtime.errors import InputError
from omni_neuron.wan22.models.config import TEXT_LENGTH
from omni_neuron.wan22.models.umt5 import UMT5Encoder
from omni_neuron.wan22.request import check_text_length


def clean_prompt(text: str) -> str:
    """Collapse runs of white space, as vLLM-Omni does."""
    return " ".join(text.split())


class NeuronTextEncoderWrapper(nn.Module):
    """Tokenizer and encoder with the `encode_prompt` contract of vLLM-Omni's pipelines."""

    def __init__(self, tokenizer: Any, encoder: UMT5Encoder) -> None:
        super().__init__()
        self.tokenizer = tokenizer
        self.encoder = encoder

    @property
    def dtype(self) -> torch.dtype:
        """Dtype of the embeddings."""
        return next(self.encoder.parameters()).dtype

    def encode(self, prompts: Sequence[str], max_sequence_length: int, device: torch.device) -> torch.Tensor:
        """Embeddings `[B, max_sequence_length, d_model]`; rows past a prompt's end token are zero.

        A prompt that is too long is cut, and keeps its end token.
        """
        tokens = self.tokenizer(
            [clean_prompt(prompt) for prompt in prompts],
            padding="max_length",
            max_length=max_sequence_length,
            truncation=True,
            add_special_tokens=True,
            return_attention_mask=True,
            return_tensors="pt",
        )
        embeddings: torch.Tensor = self.encoder(tokens.input_ids.to(device), tokens.attention_mask.to(device))
        return embeddings

    def encode_prompt(
        self,
        prompt: str | Sequence[str],
        negative_prompt: str | Sequence[str] | None = None,
        do_classifier_free_guidance: bool = True,
        num_videos_per_prompt: int = 1,
        max_sequence_length: int = TEXT_LENGTH,
        device: torch.device | None = None,
        dtype: torch.dtype | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Embed a prompt and, for guidance, what to stay away from.

        Args:
            prompt: one prompt, or one per request.
            negative_prompt: one for all, or one per request; the empty prompt when None.
            do_classifier_free_guidance: whether the negative prompt is needed.
            num_videos_per_prompt: how often each embedding is repeated.
            max_sequence_length: length that prompts are padded or cut to, in tokens.
            device: where the encoder is.
            dtype: dtype of the result, the encoder's when None.

        Returns:
            positive and negative embeddings `[B * num_videos_per_prompt, max_sequence_length, d_model]`, the
            negative ones None without guidance.

        Raises:
            InputError: `max_sequence_length` breaks its rule, or there is another number of negative prompts.
        """
        check_text_length(max_sequence_length)
        prompts = [prompt] if isinstance(prompt, str) else list(prompt)
        device = device or next(self.encoder.parameters()).device
        dtype = dtype or self.dtype

        def embed(texts: Sequence[str]) -> torch.Tensor:
            embeddings = self.encode(texts, max_sequence_length, device).to(dtype)
            return embeddings.repeat_interleave(num_videos_per_prompt, dim=0)

        if not do_classifier_free_guidance:
            return embed(prompts), None
        negative = negative_prompt or ""
        negatives = [negative] * len(prompts) if isinstance(negative, str) else list(negative)
        if len(negatives) != len(prompts):
            raise InputError(
                f"negative_prompt has {len(negatives)} entries, but there are {len(prompts)} prompts; "
                "give one for all, or one for each."
            )
        return embed(prompts), embed(negatives)
