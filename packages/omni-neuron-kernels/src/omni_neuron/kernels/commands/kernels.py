"""`omni-neuron kernels`: what kernels there are, whether they are right, and what they would cost."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from errno import EISDIR
from os import strerror
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from omni_neuron.kernels.spec import KernelSpec

SUMMARY = "List the NKI kernels, prove them in the interpreter, predict what they cost."
ALL = "all"
FAILED = 1
PREDICTION = "Predicted by the interpreter's cost model; nothing here was measured on a device."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    actions = parser.add_subparsers(title="actions", dest="action", metavar="ACTION", required=True)
    actions.add_parser("ls", help="name, summary, roundings and limits of every kernel", allow_abbrev=False)
    test = actions.add_parser(
        "test",
        help="twin beside float64, kernel beside twin; exit status 1 when one fails",
        description="Relative L2 of the twin beside float64 and of the kernel in the interpreter beside its "
        "twin, each with its bar.",
        allow_abbrev=False,
    )
    cost = actions.add_parser(
        "roofline",
        help="time, busiest engine and share of the roofline bound",
        description=f"{PREDICTION} The bound is min(peak, arithmetic intensity x DMA bandwidth).",
        allow_abbrev=False,
    )
    for each in (test, cost):
        each.add_argument("name", metavar="NAME", help=f"a kernel of ls, or {ALL}")
        each.add_argument(
            "--lnc", type=int, choices=(1, 2), help="physical cores that share the launch (default: both)"
        )
        each.add_argument(
            "--target", choices=("trn2", "trn3"), default="trn2", help="machine (default: %(default)s)"
        )
    cost.add_argument(
        "--trace",
        metavar="FILE",
        help="write a trace for ui.perfetto.dev; where there are several, FILE-1, FILE-2 and so on",
    )


def run(args: argparse.Namespace) -> int:
    """List, prove or predict.

    Returns:
        1 where a proof fails, else 0. Bad input and a missing interpreter are exceptions.
    """
    from omni_neuron.kernels.catalogue import KERNELS
    from omni_neuron.kernels.interpreter import simulator
    from omni_neuron.kernels.report import catalogue_table

    if args.action == "ls":
        print(catalogue_table(KERNELS.values()))
        return 0
    specs = _named(args.name)
    simulator()
    lncs = (1, 2) if args.lnc is None else (args.lnc,)
    if args.action == "test":
        return _test(specs, lncs, args.target)
    _roofline(specs, lncs, args.target, args.trace)
    return 0


def _named(name: str) -> list[KernelSpec]:
    from omni_neuron.kernels.catalogue import KERNELS
    from omni_neuron.runtime.errors import InputError

    if name == ALL:
        return list(KERNELS.values())
    if name not in KERNELS:
        raise InputError(f"There is no kernel {name!r}: use one of {', '.join(KERNELS)}, or {ALL}.")
    return [KERNELS[name]]


def _test(specs: Sequence[KernelSpec], lncs: Sequence[int], target: str) -> int:
    from omni_neuron.kernels.proof import prove
    from omni_neuron.kernels.report import PROOF_HEADER, PROOF_WIDTHS, beside_titles, proof_cells, row

    print(f"Relative L2: the twin beside float64, the kernel in the interpreter ({target}) beside its twin.")
    failures = 0
    for spec in specs:
        cases = spec.cases()
        widths = beside_titles(cases, PROOF_WIDTHS)
        print(f"\n{spec.name}\n{row(PROOF_HEADER, widths)}")
        for case in cases:
            for lnc in lncs:
                proof = prove(spec, case, lnc, target)
                failures += not proof.holds
                print(row(proof_cells(proof, lnc), widths), flush=True)
    print(f"\n{failures} of them fail." if failures else "\nAll hold.")
    return FAILED if failures else 0


def _roofline(specs: Sequence[KernelSpec], lncs: Sequence[int], target: str, trace: str | None) -> None:
    from omni_neuron.kernels.report import (
        ROOFLINE_HEADER,
        ROOFLINE_WIDTHS,
        beside_titles,
        roofline_cells,
        row,
    )
    from omni_neuron.kernels.roofline import roofline

    cases = {spec.name: spec.roofline() for spec in specs}
    files = iter(_trace_files(trace, len(lncs) * sum(map(len, cases.values()))))
    print(f"{PREDICTION}\n{target}; the bound is min(peak, FLOP/B x DMA bandwidth) of the cores of a launch.")
    for spec in specs:
        widths = beside_titles(cases[spec.name], ROOFLINE_WIDTHS)
        print(f"\n{spec.name}\n{row(ROOFLINE_HEADER, widths)}")
        for case in cases[spec.name]:
            for lnc in lncs:
                found, cost = roofline(spec, case, lnc, target)
                print(row(roofline_cells(found), widths), flush=True)
                _write_trace(cost, next(files))


def _trace_files(trace: str | None, runs: int) -> list[Path | None]:
    """A file for each run's trace. They are opened before the first run, which may take minutes."""
    if trace is None:
        return [None] * runs
    path = Path(trace)
    with _writing(path):
        if path.is_dir():
            raise IsADirectoryError(EISDIR, strerror(EISDIR))
    files = [path]
    if runs > 1:
        files = [path.with_name(f"{path.stem}-{n}{path.suffix}") for n in range(1, runs + 1)]
    for file in files:
        with _writing(file), file.open("ab"):
            pass
    return list(files)


def _write_trace(cost: Any, file: Path | None) -> None:
    if file is not None:
        with _writing(file):
            cost.write_perfetto(file)


@contextmanager
def _writing(file: Path) -> Iterator[None]:
    from omni_neuron.runtime.errors import InputError

    try:
        yield
    except OSError as error:
        raise InputError(
            f"trace={str(file)!r} must be a file that can be written: {error.strerror}."
        ) from None
