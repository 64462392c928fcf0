"""Prompt embeddings beside those of vLLM-Omni's stock pipeline, made in a process of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import nn
from transformers import AutoTokenizer

from omni_neuron.distributed.groups import ParallelGroup
from omni_neuron.distributed.loading.sharded_loader import load_sharded
from omni_neuron.wan22.checkpoint.tiny import tiny_checkpoint
from omni_neuron.wan22.models.umt5 import UMT5Encoder
from omni_neuron.wan22.models.umt5_config import UMT5Config
from omni_neuron.wan22.pipelines.text_encoder import NeuronTextEncoderWrapper, clean_prompt

SCRIPT = Path(__file__).parents[1] / "reference" / "encode_prompt.py"
BAR = 1e-6
LONG = "a red ball rolling over grass " * 20
CASES: dict[str, dict[str, Any]] = {
    "one prompt": {"prompt": "a red ball"},
    "white space": {"prompt": "  a \n red\t ball "},
    "a negative prompt": {"prompt": "a red ball", "negative_prompt": "blurry, grey"},
    "one negative prompt for all": {"prompt": ["a red ball", "grass"], "negative_prompt": "blurry"},
    "one for each": {"prompt": ["a red ball", "grass"], "negative_prompt": ["blurry", ""]},
    "several videos": {
        "prompt": ["a red ball", "grass"],
        "negative_prompt": ["blurry", "grey"],
        "num_videos_per_prompt": 2,
    },
    "no guidance": {"prompt": "a red ball", "do_classifier_free_guidance": False},
    "too long": {"prompt": LONG, "negative_prompt": LONG, "max_sequence_length": 12},
}


@pytest.fixture(scope="module")
def wrapper() -> NeuronTextEncoderWrapper:
    folder = tiny_checkpoint()
    encoder = UMT5Encoder(
        UMT5Config.from_json_file(folder / "text_encoder" / "config.json"),
        ParallelGroup.single("text_encoder"),
        dtype=torch.float32,
    )
    load_sharded(encoder, folder / "text_encoder", **encoder.load_options)
    tokenizer = AutoTokenizer.from_pretrained(folder / "tokenizer", local_files_only=True)
    return NeuronTextEncoderWrapper(tokenizer, encoder)


@pytest.fixture(scope="module")
def stock(tmp_path_factory: pytest.TempPathFactory) -> dict[str, torch.Tensor]:
    folder = tmp_path_factory.mktemp("encode_prompt")
    (folder / "cases.json").write_text(json.dumps(list(CASES.values())))
    arguments = [str(tiny_checkpoint()), str(folder / "cases.json"), str(folder / "out.safetensors")]
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *arguments],
        env={**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return load_file(folder / "out.safetensors")


@pytest.mark.parametrize("name", CASES)
def test_embeddings_are_those_of_the_stock_pipeline(
    name: str, wrapper: NeuronTextEncoderWrapper, stock: dict[str, torch.Tensor]
) -> None:
    index = list(CASES).index(name)
    with torch.inference_mode():
        made = dict(zip(("positive", "negative"), wrapper.encode_prompt(**CASES[name]), strict=True))
    for branch, embeddings in made.items():
        expected = stock.get(f"{index}.{branch}")
        assert (embeddings is None) == (expected is None)
        if expected is not None:
            assert embeddings.shape == expected.shape
            assert (embeddings - expected).norm() / expected.norm() <= BAR
            # Rows past the end of a prompt are exactly zero in both.
            assert torch.equal(embeddings.abs().sum(-1) == 0, expected.abs().sum(-1) == 0)


class Recorder(nn.Module):
    """An encoder that keeps the tokens that it was given."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1, dtype=torch.bfloat16))
        self.ids: list[torch.Tensor] = []

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        self.ids.append(input_ids)
        return attention_mask[..., None].to(self.weight.dtype)


def test_a_prompt_that_is_too_long_keeps_its_end_token(wrapper: NeuronTextEncoderWrapper) -> None:
    recorder = Recorder()
    NeuronTextEncoderWrapper(wrapper.tokenizer, recorder).encode_prompt(LONG, max_sequence_length=12)
    positive, negative = recorder.ids
    assert positive.shape == (1, 12)
    assert positive[0, -1] == wrapper.tokenizer.eos_token_id
    assert negative[0, 0] == wrapper.tokenizer.eos_token_id  # the empty prompt is its end token


def test_embeddings_have_the_encoders_dtype_unless_another_is_asked_for(
    wrapper: NeuronTextEncoderWrapper,
) -> None:
    recorder = NeuronTextEncoderWrapper(wrapper.tokenizer, Recorder())
    assert recorder.encode_prompt("x")[0].dtype == torch.bfloat16
    assert recorder.encode_prompt("x", dtype=torch.float32)[0].dtype == torch.float32


def test_another_number_of_negative_prompts_is_refused(wrapper: NeuronTextEncoderWrapper) -> None:
    with pytest.raises(ValueError, match="negative_prompt has 3 entries, but there are 2 prompts"):
        wrapper.encode_prompt(["a", "b"], ["c", "d", "e"])


def test_a_length_below_one_is_refused(wrapper: NeuronTextEncoderWrapper) -> None:
    with pytest.raises(ValueError, match="max_sequence_length is 0"):
        wrapper.encode_prompt("a", max_sequence_length=0)


def test_the_tokenizer_is_given_clean_prompts(wrapper: NeuronTextEncoderWrapper) -> None:
    """Seen here, since the tiny tokenizer itself would collapse white space."""
    given: list[str] = []

    def tokenizer(texts: list[str], **options: Any) -> Any:
        given.extend(texts)
        return wrapper.tokenizer(texts, **options)

    NeuronTextEncoderWrapper(tokenizer, Recorder()).encode_prompt("  a \n b ", "c\t\u3000d")
    assert given == ["a b", "c d"]


def test_runs_of_white_space_collapse() -> None:
    assert clean_prompt("  a \n\t b  ") == "a b"
