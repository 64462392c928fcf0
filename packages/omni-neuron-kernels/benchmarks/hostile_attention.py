"""Attention on inputs that make rows disappear: what bounds say, what a constant bound loses, what ours errs.

    python packages/omni-neuron-kernels/benchmarks/hostile_attention.py [--nats 10 100 300] [--ranks 4]

One head of 512 rows of each family, in the interpreter. `slack` is how far the upper bound of a row lies
above its largest score, at the worst row: of scale |q| max|k|, and with the mean key taken out. `lost` counts
rows that are zero and should not be: of a kernel that takes the first bound for the maximum (rows more than
85 nats below it), and of ours. `error` is the relative L2 of the one-rank kernel against float64, `ring` that
of the ring over it.
"""

from __future__ import annotations

import argparse

import torch

from omni_neuron.kernels.attention.hostile import FAMILIES, lost_by_constant_bound, score_bounds
from omni_neuron.kernels.attention.spec import FLASH_ATTENTION, RING_ATTENTION, attention_oracle
from omni_neuron.kernels.interpreter import interpret
from omni_neuron.kernels.proof import relative_l2
from omni_neuron.kernels.report import aligned

ROWS, DIM = 512, 128
SCALE = DIM**-0.5
HEADER = ("family", "nats", "slack |q||k|", "mean out", "lost there", "lost here", "error", "ring")


def row(family: str, nats: float, ranks: int) -> tuple[str, ...]:
    generator = torch.Generator().manual_seed(0)
    query, keys = (torch.randn(1, DIM, ROWS, generator=generator) for _ in range(2))
    query, keys = (x.bfloat16() for x in FAMILIES[family](query, keys, nats))
    values = torch.randn(1, ROWS, DIM, generator=generator).bfloat16()
    exact = attention_oracle(query, keys, values, None, SCALE)
    one_rank = interpret(FLASH_ATTENTION, [(query, keys, values, None, SCALE)])[0][0]
    shards = zip(query.chunk(ranks, 2), keys.chunk(ranks, 2), values.chunk(ranks, 1), strict=True)
    order = tuple(range(ranks))
    found = interpret(RING_ATTENTION, [(*shard, None, SCALE, (order,)) for shard in shards])
    ring = torch.cat([results[0] for results in found], dim=2)
    largest, plain, tight = score_bounds(query, keys, SCALE)
    lost = int(((ring == 0).all(dim=1) & (exact != 0).any(dim=1)).sum())
    error = relative_l2(one_rank, exact)
    return (
        family,
        f"{nats:g}",
        f"{float((plain - largest).max()):,.0f}",
        f"{float((tight - largest).max()):,.0f}",
        str(int(lost_by_constant_bound(query, keys, SCALE).sum())),
        str(lost),
        f"{error:.2e}",
        f"{relative_l2(ring, exact) / error:.4f}",
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nats", nargs="+", type=float, default=[10.0, 100.0, 300.0])
    parser.add_argument("--ranks", type=int, default=4)
    args = parser.parse_args()
    rows = [row(family, nats, args.ranks) for family in FAMILIES for nats in args.nats]
    print(aligned([HEADER, *rows]))


if __name__ == "__main__":
    main()
