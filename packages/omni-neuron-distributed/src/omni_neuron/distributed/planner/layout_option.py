"""The value of ``--layout``: ``tp=4,cp=8,cfg=2`` and what else decides a choice."""

from __future__ import annotations

import difflib
from dataclasses import replace
from typing import Any

from omni_neuron.distributed.errors import LayoutError
from omni_neuron.distributed.layout import TEXT_ENCODER_GROUPS, ParallelLayout
from omni_neuron.distributed.planner.choice import Choice
from omni_neuron.distributed.planner.geometry import Job
from omni_neuron.distributed.planner.search import STORAGE, check_divides, vae_ranks
from omni_neuron.runtime.errors import InputError

DEGREES = ("tp", "cp", "ulysses", "ring", "cfg", "vae", "resident_experts")
MAX_DEGREE = 4096  # far above the cores of any machine
WORDS = {
    "weight_dtype": STORAGE,
    "text_encoder_group": TEXT_ENCODER_GROUPS,
    "attention": ("gather", "ring"),
}


def parse_layout(text: str, job: Job) -> Choice:
    """The choice behind the text, not yet placed.

    What is left out is as published: both experts resident in bf16, keys and values gathered, the text
    encoder over the world. Naming ``ring`` asks for the ring of exchanges, unless ``attention`` says
    otherwise.

    Raises InputError for an unknown key or value, LayoutError for degrees that do not go together.
    """
    given = _values(text)
    resident = given.pop("resident_experts", job.model.experts)
    if not 1 <= resident <= job.model.experts:
        raise InputError(
            f"resident_experts={resident} must be 1 to {job.model.experts}, the experts of {job.model.name}: "
            f"the nearest valid choice is {min(max(resident, 1), job.model.experts)}."
        )
    attention = given.pop("attention", "ring" if "ring" in given else "gather")
    dtype = given.pop("weight_dtype", "bf16")
    text_encoder = given.pop("text_encoder_group", None)
    ulysses, ring = given.get("ulysses"), given.get("ring")
    given.setdefault("cp", max(1, ulysses or 1) * max(1, ring or 1))
    vae = given.pop("vae", None)
    bare = ParallelLayout(**given)
    check_divides(job, bare)
    vae = vae_ranks(job, bare.world_size) if vae is None else vae
    dividing = [
        name for name in TEXT_ENCODER_GROUPS if job.model.text_encoder.heads % group_size(bare, name) == 0
    ]
    if text_encoder is not None and text_encoder not in dividing:
        raise LayoutError(
            f"text_encoder_group={text_encoder} of {group_size(bare, text_encoder)} ranks must divide the "
            f"{job.model.text_encoder.heads} heads of the text encoder: the nearest choice is {dividing[-1]}."
        )
    layout = ParallelLayout(**given, vae=vae, text_encoder=text_encoder or dividing[-1])
    return Choice(layout, attention, resident, dtype)


def group_size(layout: ParallelLayout, text_encoder: str) -> int:
    """Ranks that share the text encoder in a group of that name."""
    return Choice(replace(layout, text_encoder=text_encoder)).text_encoder_ranks


def _values(text: str) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for part in text.split(","):
        key, separator, value = (piece.strip() for piece in part.partition("="))
        known = (*DEGREES, *WORDS)
        if not separator or key not in known:
            near = difflib.get_close_matches(key, known, n=1, cutoff=0.0)[0]
            raise InputError(
                f"layout={part.strip()!r} must be key=value with a key of {', '.join(known)}: "
                f"the nearest is {near}."
            )
        if key in values:
            raise InputError(f"layout={text!r} must name {key} once.")
        if key in WORDS:
            if value not in WORDS[key]:
                raise InputError(f"{key}={value!r} must be one of {', '.join(WORDS[key])}.")
            values[key] = value
        else:
            values[key] = _degree(key, value)
    return values


def _degree(key: str, value: str) -> int:
    try:
        degree = int(value)
    except ValueError:
        raise InputError(
            f"{key}={value!r} must be an integer of at least 1: the nearest choice is 1."
        ) from None
    if degree < 1:
        raise InputError(f"{key}={degree} must be at least 1: the nearest choice is 1.")
    if degree > MAX_DEGREE:
        raise InputError(f"{key}={degree} must be at most {MAX_DEGREE}: use a smaller one.")
    return degree
