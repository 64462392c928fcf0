"""What the libraries make of a checkpoint: ``python checkpoint_report.py CHECKPOINT CASES.json OUT``.

OUT.json gets what did not fit when each component was loaded by its own class, and what the tokenizer makes
of some prompts; OUT.safetensors the results of the cases, see ``pipeline.py``.  One process, for importing
takes longer than the work.
"""

import json
import sys
from pathlib import Path

import pipeline
from diffusers import AutoencoderKLWan, UniPCMultistepScheduler, WanTransformer3DModel
from transformers import AutoTokenizer, UMT5EncoderModel

PROMPTS = ["a red ball", "a blue ball", "a rid ball", "Ünïcode “quoted” zzyzx", "two  spaces"]
COMPONENTS = {
    "transformer": WanTransformer3DModel,
    "transformer_2": WanTransformer3DModel,
    "vae": AutoencoderKLWan,
    "text_encoder": UMT5EncoderModel,
}


def report(folder: str) -> dict:
    problems = {}
    for name, model in COMPONENTS.items():
        _, info = model.from_pretrained(folder, subfolder=name, output_loading_info=True)
        problems[name] = sorted(str(entry) for entries in info.values() for entry in entries)
    tokenizer = AutoTokenizer.from_pretrained(folder, subfolder="tokenizer")
    batch = tokenizer(PROMPTS, padding="max_length", max_length=32, truncation=True)
    long = tokenizer("ball " * 100, padding="max_length", max_length=16, truncation=True)
    scheduler = UniPCMultistepScheduler.from_pretrained(folder, subfolder="scheduler").config
    return {
        "problems": problems,
        "ids": batch["input_ids"],
        "mask": batch["attention_mask"],
        "truncated": long["input_ids"],
        "tokens": [tokenizer.convert_ids_to_tokens(ids) for ids in batch["input_ids"]],
        "solver": [scheduler.solver_order, scheduler.solver_type, scheduler.prediction_type],
    }


if __name__ == "__main__":
    folder, cases, out = sys.argv[1:]
    Path(f"{out}.json").write_text(json.dumps(report(folder)))
    pipeline.main(folder, cases, f"{out}.safetensors")
