"""Ring attention of whole videos on a trn2, predicted: 32,760 tokens (480p x 81) and 75,600 (720p x 81).

    python packages/omni-neuron-kernels/benchmarks/long_attention.py [--tokens N] [--ranks 4 8] [--lnc 1 2]

One head a rank, so ranks with many heads do a little better. The interpreter computes every score: 75,600
tokens take minutes and several GB of memory.
"""

from __future__ import annotations

import argparse
import time

from omni_neuron.kernels.attention.spec import RING_ATTENTION, ring_case
from omni_neuron.kernels.report import ROOFLINE_HEADER, aligned, roofline_cells
from omni_neuron.kernels.roofline import roofline


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tokens", nargs="+", type=int, default=[32_760, 75_600])
    parser.add_argument("--ranks", nargs="+", type=int, default=[4])
    parser.add_argument("--lnc", nargs="+", type=int, choices=(1, 2), default=[1, 2])
    args = parser.parse_args()
    rows = [(*ROOFLINE_HEADER, "took")]
    for tokens in args.tokens:
        for ranks in args.ranks:
            if tokens % ranks:
                parser.error(f"{tokens} tokens do not divide over {ranks} ranks.")
            case = ring_case(tuple(range(ranks)), 1, tokens // ranks)
            for lnc in args.lnc:
                start = time.monotonic()
                cells = roofline_cells(roofline(RING_ATTENTION, case, lnc)[0])
                rows.append((*cells, f"{time.monotonic() - start:.0f} s"))
                print(aligned([rows[0], rows[-1]]), flush=True)
    print(f"\n{aligned(rows)}")


if __name__ == "__main__":
    main()
