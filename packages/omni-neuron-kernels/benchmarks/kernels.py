"""What every kernel would cost on a trn2, on one core and on two: the table of docs/kernels.md.

    python packages/omni-neuron-kernels/benchmarks/kernels.py [--kernel NAME ...] [--page docs/kernels.md]

The interpreter runs the cases that the catalogue names and predicts their time. With --page the table is also
written into the page. `omni-neuron kernels roofline` prints the same rows one by one.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from omni_neuron.kernels.catalogue import KERNELS
from omni_neuron.kernels.reference import COST_MARKS, rewrite
from omni_neuron.kernels.report import ROOFLINE_HEADER, aligned, roofline_cells
from omni_neuron.kernels.roofline import roofline

LNC = (1, 2)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kernel", nargs="+", choices=KERNELS, default=list(KERNELS), metavar="NAME")
    parser.add_argument("--page", type=Path, help="write the table into this page, too")
    args = parser.parse_args()
    if args.page is not None and list(args.kernel) != list(KERNELS):
        parser.error("--page writes the costs of every kernel: leave --kernel out.")
    rows = [("kernel", *ROOFLINE_HEADER)]
    for name in args.kernel:
        spec = KERNELS[name]
        for case in spec.roofline():
            rows += [(name, *roofline_cells(roofline(spec, case, lnc)[0])) for lnc in LNC]
    table = aligned(rows)
    print(table)
    if args.page is not None:
        rewrite(args.page, COST_MARKS, f"```\n{table}\n```")


if __name__ == "__main__":
    main()
