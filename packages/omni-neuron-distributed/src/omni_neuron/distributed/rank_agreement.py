"""Do all ranks hold the same bytes?

Ranks that should be replicas (of the latents after a step, of a gathered prediction) can differ while
rank 0 looks right: a gather in the wrong order, a seed of its own, a stale weight. A digest per rank
tells, at the price of one copy to the host and 32 bytes on the wire.
"""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Iterable

import torch
import torch.distributed as dist

from omni_neuron.distributed.collectives import all_gather_stacked
from omni_neuron.distributed.groups import ParallelGroup


class RankDisagreementError(RuntimeError):
    """Ranks that should hold the same bytes do not.

    ``digests`` are the hexadecimal SHA-256 by global rank.
    """

    def __init__(self, message: str, digests: dict[int, str]) -> None:
        super().__init__(message)
        self.digests = digests


def world_group() -> ParallelGroup:
    """All ranks of the default process group."""
    if not dist.is_initialized() or dist.get_world_size() == 1:
        return ParallelGroup.single("world")
    return ParallelGroup.from_process_group("world", range(dist.get_world_size()), dist.group.WORLD)


def tensor_digest(tensors: torch.Tensor | Iterable[torch.Tensor]) -> bytes:
    """SHA-256 over dtype, shape and bytes of each tensor in turn, wherever it lives."""
    digest = hashlib.sha256()
    for tensor in [tensors] if isinstance(tensors, torch.Tensor) else tensors:
        host = tensor.detach().cpu().contiguous()
        digest.update(f"{host.dtype}{tuple(host.shape)}".encode())
        digest.update(ctypes.string_at(host.data_ptr(), host.nbytes))
    return digest.digest()


def rank_digests(tensors: torch.Tensor | Iterable[torch.Tensor], group: ParallelGroup) -> dict[int, str]:
    """The hexadecimal :func:`tensor_digest` of every rank, by global rank in list order.

    Digests travel as host tensors, so the group needs a host backend beside the device's.
    """
    mine = torch.frombuffer(bytearray(tensor_digest(tensors)), dtype=torch.uint8)
    rows = all_gather_stacked(mine, group)
    return {rank: bytes(row.tolist()).hex() for rank, row in zip(group.ranks, rows, strict=True)}


def check_rank_agreement(
    name: str,
    tensors: torch.Tensor | Iterable[torch.Tensor],
    group: ParallelGroup,
    *,
    enabled: bool = True,
) -> None:
    """Raise on every rank unless all ranks of ``group`` hold the same bytes.

    Args:
        name: what the tensors are, for the message.
        tensors: this rank's replica.
        group: the ranks that must agree; all of them must call.
        enabled: the debug switch; False does nothing at all. It must have one value on all ranks.

    Raises:
        RankDisagreementError: names the ranks that differ from most others (from the first rank of the
            list where no digest is the most frequent).
    """
    if not enabled or group.size == 1:
        return
    digests = rank_digests(tensors, group)
    if len(set(digests.values())) == 1:
        return
    found = list(digests.values())
    common = max(dict.fromkeys(found), key=found.count)
    differing = [rank for rank, digest in digests.items() if digest != common]
    agreeing = [rank for rank, digest in digests.items() if digest == common]
    raise RankDisagreementError(
        f"{name} must have the same bytes on all {group.size} ranks of the {group.name} group, but ranks "
        f"{differing} differ from ranks {agreeing}: look for what those ranks were given or gathered in "
        "another order.",
        digests,
    )
