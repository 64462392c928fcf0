"""The verb itself: plan, run, write, report."""

from __future__ import annotations

import json
import os
import time
from typing import Any

from omni_neuron.platform.stage_config import StageConfig
from omni_neuron.runtime.envs import nki_simulator
from omni_neuron.runtime.mode import detect_mode, enter_command_mode
from omni_neuron.wan22 import envs
from omni_neuron.wan22.generation.engine import Generated, running_engine
from omni_neuron.wan22.generation.interrupt import prompt_interrupt
from omni_neuron.wan22.generation.options import GenerateOptions
from omni_neuron.wan22.generation.plan import GenerationPlan, plan_generation
from omni_neuron.wan22.generation.streams import say, stdout_for_result
from omni_neuron.wan22.media.contact_sheet import write_contact_sheet
from omni_neuron.wan22.media.latents import write_latents
from omni_neuron.wan22.media.video import write_video

CROWD = 4  # workers to a core


def generate(options: GenerateOptions) -> None:
    """Make the video and its contact sheet, and the latents where asked for.

    Raises:
        InputError: bad input, found before the engine starts where it can be.
        EngineError: the engine or a worker failed.
    """
    start = time.perf_counter()
    with stdout_for_result() as print_result, prompt_interrupt():
        mode = enter_command_mode()
        if mode is not None:
            say(mode)
        _quieten_engine()
        plan = plan_generation(options)
        _announce(plan)
        with running_engine(plan.checkpoint.folder, plan.stage) as engine:
            result = engine.generate(plan.request)
            startup = engine.startup_s
        write = _write(plan, result)
        total = time.perf_counter() - start
        timings = {"startup": startup, **result.durations_s, "write": write, "total": total}
        say(f"wrote {plan.video} and {plan.contact_sheet} in {total:.1f} s")
        if options.json:
            print_result(json.dumps(_report(plan, result, timings)))


def _quieten_engine() -> None:
    """Keep the engine's log to warnings, and its files local, unless the user chose otherwise."""
    for variable, value in ((envs.logging_level, "WARNING"), (envs.hub_offline, "1")):
        if not variable.is_set():
            variable.set(value)


def _announce(plan: GenerationPlan) -> None:
    for note in plan.notes:
        say(note)
    crowd = crowd_warning(plan.stage.world_size, len(os.sched_getaffinity(0)))
    if crowd is not None and detect_mode().is_cpu:
        say(crowd)
    kernels = interpreter_note(plan.stage)
    if kernels is not None:
        say(kernels)
    degrees = " x ".join(f"{name}{degree}" for name, degree in plan.layout.items())
    if plan.stage.ulysses_degree > 1:
        degrees += f" (ulysses{plan.stage.ulysses_degree})"
    request = plan.request
    size = f"{request['width']}x{request['height']}"
    say(
        f"{plan.checkpoint.folder.name}: {request['num_frames']} frames of {size}, "
        f"{request['num_inference_steps']} steps, {plan.stage.get('dtype')}, {degrees}"
    )
    say("starting the engine")


def crowd_warning(workers: int, cores: int) -> str | None:
    """What to say when the workers, in CPU mode, are far too many for the cores of this machine."""
    if workers <= CROWD * cores:
        return None
    return (
        f"warning: the layout takes {workers} workers, and this machine has {cores} CPU cores: they take "
        "turns and each needs its memory, so choose smaller degrees if it is too slow."
    )


def interpreter_note(stage: StageConfig) -> str | None:
    """What to say where NKI_SIMULATOR=1 asks for the interpreter of kernels in CPU mode."""
    if not (nki_simulator() and detect_mode().is_cpu):
        return None
    ring = bool(stage.get("model_config.ring_attention"))
    default = stage.get("diffusion_attention_config.default") or envs.attention_backend()
    roles = (stage.get("diffusion_attention_config.per_role") or {}).values()
    if ring or any("FLASH_ATTN" in str(backend).upper() for backend in (default, *roles)):
        return f"{nki_simulator.name}=1: attention kernels run in the interpreter."
    return (
        f"warning: {nki_simulator.name}=1 has no effect, as no kernel is asked for: select FLASH_ATTN for a "
        f"role, for example with {envs.attention_backend.name}=FLASH_ATTN, or ring_attention in a stage file."
    )


def _write(plan: GenerationPlan, result: Generated) -> float:
    start = time.perf_counter()
    write_video(plan.video, result.frames, fps=plan.request["fps"])
    write_contact_sheet(plan.contact_sheet, result.frames)
    if plan.latents is not None:
        write_latents(plan.latents, result.latents)
    return time.perf_counter() - start


def _report(plan: GenerationPlan, result: Generated, timings: dict[str, float]) -> dict[str, Any]:
    return {
        "video": str(plan.video),
        "contact_sheet": str(plan.contact_sheet),
        "latents": None if plan.latents is None else str(plan.latents),
        "layout": plan.layout,
        "dtype": plan.stage.get("dtype"),
        "seed": plan.request["seed"],
        "timings_s": {name: round(seconds, 3) for name, seconds in timings.items()},
        "latents_sha256": result.latents_sha256,
        "peak_rss_anon_mib": result.peak_rss_anon_mib,
    }
