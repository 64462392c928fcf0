"""Which path a head takes, seen in the trace of what ran."""

from collections import Counter
from pathlib import Path

import pytest
import torch
from torch import Tensor

from omni_neuron.kernels.attention import hostile
from omni_neuron.kernels.attention.spec import FLASH_ATTENTION, RING_ATTENTION, flash_case
from omni_neuron.kernels.attention.window import width
from omni_neuron.kernels.interpreter import profiled
from omni_neuron.kernels.spec import Case, KernelSpec

KEYS = 300


def heads(*nats: float) -> tuple[Tensor, Tensor, Tensor]:
    """One head for each number, with scores that reach it."""
    generator = torch.Generator().manual_seed(0)
    query, keys = (torch.randn(len(nats), 128, KEYS, generator=generator) for _ in range(2))
    scaled = [hostile.large_logits(query[i : i + 1], keys[i : i + 1], n)[0] for i, n in enumerate(nats)]
    values = torch.randn(len(nats), KEYS, 128, generator=generator)
    return torch.cat(scaled).bfloat16(), keys.bfloat16(), values.bfloat16()


def passes(query: Tensor, keys: Tensor, values: Tensor) -> Counter[str]:
    """How many products with the values each pass made."""
    return ran(FLASH_ATTENTION, Case("", ((query, keys, values, None, 128**-0.5),)))


def ran(spec: KernelSpec, case: Case) -> Counter[str]:
    run = profiled(spec, case)
    files = [Path(str(slot.event.where).rsplit(":", 1)[0]).stem for slot in run.timelines[0].slots]
    return Counter(name for name in files if name in ("exact_pass", "window_pass"))


def slack(query: Tensor, keys: Tensor) -> float:
    """What the kernel sees of a head: the widest bounds, upper above lower, in nats."""
    query, keys = query.double(), keys.double()
    mean = keys.mean(dim=2, keepdim=True)
    level = (query.mT @ mean)[:, :, 0] * 128**-0.5
    reach = query.norm(dim=1) * (keys - mean).norm(dim=1).amax() * 128**-0.5
    return float((level + reach).max() - level.min())


def test_heads_in_the_window_never_follow_the_maximum() -> None:
    query, keys, values = heads(4.0, 8.0)
    assert slack(query[:1], keys[:1]) < width(KEYS)
    assert passes(query, keys, values)["exact_pass"] == 0


def test_only_the_head_outside_follows_the_maximum() -> None:
    query, keys, values = heads(4.0, 200.0, 8.0)
    alone = passes(query[1:2], keys[1:2], values[1:2])
    mixed = passes(query, keys, values)
    assert slack(query[1:2], keys[1:2]) > width(KEYS)
    assert alone["exact_pass"] > 0
    assert mixed["exact_pass"] == alone["exact_pass"]


def test_the_window_is_that_of_the_keys_of_all_ranks() -> None:
    """Bounds of equal keys are the scores themselves; one rank's keys alone would have a wider window."""
    ranks, shard = 8, 3
    between = 0.5 * (width(shard) + width(ranks * shard))
    query = torch.tensor([[[1.0, -1.0, 1.0]]])
    keys, values = torch.full((1, 1, shard), 0.5 * between), torch.ones(1, shard, 1)
    order = (tuple(range(ranks)),)
    case = Case("", tuple((query, keys, values, None, 1.0, order) for _ in range(ranks)))
    assert ran(RING_ATTENTION, case)["exact_pass"] > 0


@pytest.mark.parametrize(("share", "exact"), [(0.93, False), (1.05, True)])
def test_the_limit_is_that_of_the_window(share: float, exact: bool) -> None:
    """Bounds are taken up to 2 % too wide, never too narrow."""
    query, keys, values = heads(30.0)
    query = (query * (share * width(KEYS) / slack(query, keys))).bfloat16()
    assert (passes(query, keys, values)["exact_pass"] > 0) is exact


def test_one_pass_over_the_keys_is_the_common_case() -> None:
    """At the logits of level 0 no case of the catalogue leaves the window."""
    case = flash_case(2, 130, 700)
    assert passes(*case.ranks[0][:3])["exact_pass"] == 0
