"""`omni-neuron generate PROMPT`: a video from text, through vLLM-Omni's engine."""

from __future__ import annotations

import argparse

SUMMARY = "Make a video from a prompt."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    from omni_neuron.wan22.generation.options import add_arguments as add

    add(parser)


def run(args: argparse.Namespace) -> int:
    """Generate, write the files, and report.

    Returns:
        0; every failure is an exception, whose class tells bad input from the rest.
    """
    from omni_neuron.wan22.generation.options import GenerateOptions
    from omni_neuron.wan22.generation.run import generate

    generate(GenerateOptions.from_arguments(args))
    return 0
