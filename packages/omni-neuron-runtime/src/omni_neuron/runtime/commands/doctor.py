"""`omni-neuron doctor`: what is installed, which mode would run and why, and what to do."""

import argparse
import json

from omni_neuron.runtime.diagnosis.report import Diagnosis, diagnose

SUMMARY = "Tell what is installed, which mode would run and why, and what to do."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = f"{SUMMARY} The exit status is 0 only when a generation could run."
    parser.add_argument("--json", action="store_true", help="print one line of JSON in place of the text")


def run(args: argparse.Namespace) -> int:
    """Print the diagnosis; 0 when a generation could run, 1 otherwise."""
    diagnosis = diagnose()
    print(json.dumps(diagnosis.as_dict()) if args.json else render(diagnosis))
    return 0 if diagnosis.can_generate else 1


def render(diagnosis: Diagnosis) -> str:
    """The diagnosis as text: one line per check, its remedy below it, the verdict last."""
    width = max(len(check.name) for check in diagnosis.checks)
    lines = []
    for check in diagnosis.checks:
        lines.append(f"{check.status.value:4}  {check.name:{width}}  {check.finding}")
        if check.remedy:
            lines.append(f"{'':4}  {'':{width}}  -> {check.remedy}")
    return "\n".join([*lines, "", _verdict(diagnosis)])


def _verdict(diagnosis: Diagnosis) -> str:
    if diagnosis.can_generate and diagnosis.mode is not None:
        where = "on the CPU" if diagnosis.mode.is_cpu else "on Neuron devices"
        return f"A generation can run {where}."
    return "A generation cannot run: see the lines marked fail."
