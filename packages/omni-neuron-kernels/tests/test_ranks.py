from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import Tensor

from omni_neuron.distributed.testing import run_ranks
from omni_neuron.kernels import ranks
from omni_neuron.kernels.nki import ncc, nisa, nki, nl
from omni_neuron.kernels.ranks import ALONE, launch_ranks, numbered
from omni_neuron.runtime.adapter import get_adapter

SOURCE = f"{__name__}:gather_kernel"


@nki.jit
def gather_kernel(x: Any, scale: float, replica_groups: Any) -> Any:
    """x `[N]` of all ranks, one behind the other, times `scale`; x itself becomes 7."""
    ranks = 1 if replica_groups is None else len(replica_groups[0])
    width = x.shape[0]
    mine = nl.ndarray((1, width), x.dtype)
    nisa.dma_copy(mine, x)
    nisa.tensor_scalar(mine, mine, nl.multiply, scale)
    out = nl.ndarray((ranks, width), x.dtype, buffer=nl.shared_hbm)
    if ranks == 1:
        nisa.dma_copy(out, mine)
    else:
        source = nl.ndarray((1, width), x.dtype, buffer=nl.shared_hbm, name="source")
        gathered = nl.ndarray((ranks, width), x.dtype, buffer=nl.shared_hbm, name="gathered")
        nisa.dma_copy(source, mine)
        ncc.all_gather(source, gathered, ncc.ReplicaGroup(replica_groups), 0)
        nisa.dma_copy(out, gathered)
    nisa.memset(mine, 7.0)
    nisa.dma_copy(x, mine)
    return out


def on_a_rank(rank: int, partition: tuple[tuple[int, ...], ...]) -> tuple[Tensor, Tensor]:
    groups = [dist.new_group(sorted(group)) for group in partition]
    mine = next(g for g, ranks in zip(groups, partition, strict=True) if rank in ranks)
    get_adapter().register_replica_groups(mine.group_name, partition)
    x = torch.tensor([float(rank), rank + 0.5])
    return launch_ranks(SOURCE, mine.group_name, (x, 1.0 + rank)), x


@pytest.fixture(autouse=True)
def _interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_NEURON_CPU_MODE", "1")
    monkeypatch.setenv("NKI_SIMULATOR", "1")
    monkeypatch.setenv("NEURON_LOGICAL_NC_CONFIG", "1")


def expected(*ranks: int) -> Tensor:
    """Rank r gives (r, r + 0.5) times its own factor 1 + r."""
    return torch.tensor([[r * (1.0 + r), (r + 0.5) * (1.0 + r)] for r in ranks])


def test_two_processes_meet_in_the_order_of_the_partition() -> None:
    """The process group knows (0, 1); what holds is the list (1, 0)."""
    for gathered, x in run_ranks(2, on_a_rank, ((1, 0),)):
        assert torch.equal(gathered, expected(1, 0))
        assert torch.equal(x, torch.full((2,), 7.0))  # the kernel wrote into the caller's own tensor


def test_two_groups_do_not_mix() -> None:
    partition = ((0, 2), (3, 1))
    results = [gathered for gathered, _ in run_ranks(4, on_a_rank, partition)]
    for rank, group in ((0, (0, 2)), (2, (0, 2)), (1, (3, 1)), (3, (3, 1))):
        assert torch.equal(results[rank], expected(*group))


def test_a_rank_alone_needs_no_process_group() -> None:
    assert torch.equal(
        launch_ranks(SOURCE, ALONE, (torch.tensor([1.0, 1.5]), 2.0)), torch.tensor([[2.0, 3.0]])
    )


def test_a_group_that_nobody_registered_is_named() -> None:
    with pytest.raises(KeyError, match="nobody"):
        launch_ranks(SOURCE, "nobody", (torch.zeros(2), 1.0))


class Wire:
    """An adapter of devices, as far as `numbered` asks."""

    name = "neuron"

    def __init__(self, groups: tuple[tuple[int, ...], ...]) -> None:
        self.groups = groups

    def replica_groups(self, group_name: str) -> tuple[tuple[int, ...], ...]:
        return self.groups


def numbered_on_a_device(rank: int, groups: tuple[tuple[int, ...], ...]) -> Tensor:
    ranks.get_adapter = lambda: Wire(groups)
    return numbered(torch.tensor([10, 11]), "group")


@pytest.mark.parametrize(
    ("groups", "tables"), [(((0,), (1,)), ([10], [11])), (((1, 0),), ([10, 11], [10, 11]))]
)
def test_what_a_kernel_on_a_device_looks_ranks_up_in(
    groups: tuple[tuple[int, ...], ...], tables: tuple[list[int], ...]
) -> None:
    """A rank alone is the first of its table; a ring knows the ranks of the world."""
    assert [table.tolist() for table in run_ranks(2, numbered_on_a_device, groups)] == list(tables)
