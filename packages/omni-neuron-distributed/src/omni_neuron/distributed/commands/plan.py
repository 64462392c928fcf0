"""`omni-neuron plan`: which layouts fit and route, what they move, and how long they would take."""

from __future__ import annotations

import argparse

SUMMARY = "Predict which layouts fit a machine, what they move and how long they take."
DEFAULT_TOP = 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    parser.description = f"{SUMMARY} Nothing is run: seconds are predictions under two stated assumptions."
    parser.add_argument(
        "--model", required=True, metavar="NAME|DIR", help="a known model or a checkpoint folder"
    )
    parser.add_argument("--height", type=int, help="pixels; left out, the model's own size")
    parser.add_argument("--width", type=int, help="pixels")
    parser.add_argument("--num-frames", type=int, help="frames, one more than a multiple of four")
    parser.add_argument("--steps", type=int, help="denoising steps")
    parser.add_argument("--instance", default="trn2.48xlarge", help="machine (default: %(default)s)")
    parser.add_argument(
        "--layout",
        metavar="tp=4,cp=8,cfg=2",
        help="price exactly this one; further keys: ulysses, ring, vae, resident_experts, weight_dtype, "
        "text_encoder_group, attention",
    )
    parser.add_argument(
        "--top", type=int, metavar="K", help=f"rows to show (default: {DEFAULT_TOP}; JSON: all)"
    )
    parser.add_argument("--json", action="store_true", help="print one line of JSON in place of the text")
    parser.add_argument("--svg", metavar="F", help="draw the groups of the first row into this file")


def run(args: argparse.Namespace) -> int:
    """Plan and print.

    Returns:
        0; every failure is an exception, whose class tells bad input from the rest.
    """
    import json
    from pathlib import Path

    from omni_neuron.distributed.planner.drawing import draw_svg
    from omni_neuron.distributed.planner.job import make_job
    from omni_neuron.distributed.planner.layout_option import parse_layout
    from omni_neuron.distributed.planner.model_files import load_model
    from omni_neuron.distributed.planner.plan import plan_all, plan_one
    from omni_neuron.distributed.planner.report import report
    from omni_neuron.distributed.topology import instance
    from omni_neuron.runtime.errors import InputError

    if args.top is not None and args.top < 1:
        raise InputError(f"top={args.top} must be at least 1: the nearest valid choice is 1.")
    topology = instance(args.instance)
    job = make_job(load_model(args.model), args.height, args.width, args.num_frames, args.steps)
    if args.layout is None:
        plan = plan_all(job, topology)
    else:
        plan = plan_one(job, parse_layout(args.layout, job), topology)
    if args.svg is not None:
        try:
            Path(args.svg).write_text(draw_svg(plan.candidates[0].choice.layout, topology))
        except OSError as error:
            raise InputError(
                f"svg={args.svg!r} must be a file that can be written: {error.strerror}."
            ) from None
    print(json.dumps(plan.as_dict(args.top)) if args.json else report(plan, args.top or DEFAULT_TOP))
    return 0
