"""vLLM-Omni's own `encode_prompt` over transformers' UMT5: `python encode_prompt.py MODEL CASES.json OUT`.

CASES is a list of keyword arguments; OUT gets `{index}.positive` and, with guidance, `{index}.negative`.
"""

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import torch
from safetensors.torch import save_file
from transformers import AutoTokenizer, UMT5EncoderModel
from vllm_omni.diffusion.models.wan2_2.pipeline_wan2_2 import Wan22Pipeline

model, cases, out = sys.argv[1:]
pipeline = SimpleNamespace(
    tokenizer=AutoTokenizer.from_pretrained(Path(model) / "tokenizer", local_files_only=True),
    text_encoder=UMT5EncoderModel.from_pretrained(Path(model) / "text_encoder", dtype=torch.float32).eval(),
    device=torch.device("cpu"),
    _prompt_clean=Wan22Pipeline._prompt_clean,
)
tensors = {}
with torch.inference_mode():
    for index, case in enumerate(json.loads(Path(cases).read_text())):
        positive, negative = Wan22Pipeline.encode_prompt(pipeline, **case)
        tensors[f"{index}.positive"] = positive.clone()
        if negative is not None:
            tensors[f"{index}.negative"] = negative.clone()
save_file(tensors, out)
