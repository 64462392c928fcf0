"""Collectives whose pieces differ in size.

The layout of `metadata_tensor` is not documented publicly. Here it is int32 in HBM with one column for each
position of the group; it counts rows, along dimension 0 of the tensors.

  all_gather_v   row 0  how many rows each position gives
                 row 1  with has_rdispls: where they go in dsts
  all_to_all_v   row 0  how many rows go to each position
                 row 1  where they start in srcs
                 row 2  how many come from each; written by the collective unless recv_counts_known
                 row 3  with has_rdispls: where they go in dsts

Without has_rdispls the pieces lie one behind the other. Rows of dsts that nobody sends to stay as they are.
"""

from typing import Any

import numpy as np

from omni_neuron.sim.errors import KernelError
from omni_neuron.sim.memory.access import Codes, Content, read, require_defined
from omni_neuron.sim.memory.tensor import NkiTensor
from omni_neuron.sim.nki.collectives.groups import as_group, own_group
from omni_neuron.sim.nki.collectives.meeting import exchange, in_hbm, tensors
from omni_neuron.sim.nki.isa.instruction import Work, instruction
from omni_neuron.sim.numerics.formats import Array, int32


def _one(argument: str, value: Any) -> NkiTensor:
    found = tensors(argument, value)
    in_hbm(argument, found)
    if len(found) != 1:
        raise KernelError(
            "collective", f"{len(found)} tensors in {argument}: a collective of this kind moves one."
        )
    return found[0]


def _metadata(tensor: NkiTensor, rows: int, group: tuple[int, ...]) -> Content:
    if tensor.on_chip or tensor.dtype is not int32 or tensor.ndim != 2 or tensor.shape[1] != len(group):
        raise KernelError(
            "collective", f"metadata_tensor = {tensor!r} must be int32 [{rows}, {len(group)}] in HBM."
        )
    if tensor.shape[0] < rows:
        raise KernelError("collective", f"metadata_tensor = {tensor!r} must have {rows} rows.")
    content = read(tensor)
    require_defined(content, tensor, "metadata")
    return Content(content.values.copy())


def _begin(
    srcs: Any, dsts: Any, replica_group: Any, metadata_tensor: NkiTensor, rows: int
) -> tuple[NkiTensor, NkiTensor, tuple[int, ...], Content]:
    """What both collectives take: the tensors, the group, and the metadata as they are now."""
    src, dst, group = _one("srcs", srcs), _one("dsts", dsts), own_group(replica_group)
    return src, dst, group, _metadata(metadata_tensor, rows, group)


def _starts(counts: Array) -> Array:
    """Pieces one behind the other."""
    return np.concatenate([[0], np.cumsum(counts)[:-1]])


def _put(into: Content, at: int, rows: Content, limit: str) -> None:
    count = rows.values.shape[0]
    if at < 0 or at + count > into.values.shape[0]:
        raise KernelError(
            "out-of-range", f"rows {at} to {at + count} of {limit}, which has {into.values.shape[0]}."
        )
    into.values[at : at + count] = rows.values
    if into.undefined is None and rows.undefined is None:
        return
    if into.undefined is None:
        into.undefined = np.zeros(into.values.shape, np.uint8)
    into.undefined[at : at + count] = 0 if rows.undefined is None else rows.undefined


def _rows(content: Content, at: int, count: int, name: str) -> Content:
    if at < 0 or count < 0 or at + count > content.values.shape[0]:
        raise KernelError(
            "out-of-range", f"rows {at} to {at + count} of {name}, which has {content.values.shape[0]}."
        )
    codes: Codes | None = None if content.undefined is None else content.undefined[at : at + count]
    return Content(content.values[at : at + count], codes)


def _copy(tensor: NkiTensor) -> Content:
    found = read(tensor)
    return Content(found.values.copy(), None if found.undefined is None else found.undefined.copy())


@instruction
def all_gather_v(
    srcs: Any,
    dsts: Any,
    replica_group: Any,
    metadata_tensor: NkiTensor,
    recv_counts_known: bool = False,
    has_rdispls: bool = False,
    name: str | None = None,
) -> Work:
    """Every rank gives as many rows as row 0 of the metadata says, and gets those of all."""
    rows = 2 if has_rdispls else 1
    src, dst, group, table = _begin(srcs, dsts, replica_group, metadata_tensor, rows)

    def act(contents: dict[int, list[Content]]) -> dict[int, list[Content]]:
        results = {}
        for rank in group:
            _, into, own = contents[rank]
            starts = own.values[1] if has_rdispls else _starts(own.values[0])
            for position, sender in enumerate(group):
                given = int(own.values[0][position])
                if given != int(contents[sender][2].values[0][position]):
                    raise KernelError(
                        "collective", f"rank {rank} expects {given} rows of rank {sender}, which gives other."
                    )
                _put(into, int(starts[position]), _rows(contents[sender][0], 0, given, repr(src)), repr(dst))
            results[rank] = [into]
        return results

    settings = (as_group(replica_group), has_rdispls, recv_counts_known)
    return exchange("all_gather_v", settings, group, (src,), (dst,), act, [_copy(src), _copy(dst), table])


@instruction
def all_to_all_v(
    srcs: Any,
    dsts: Any,
    replica_group: Any,
    metadata_tensor: NkiTensor,
    recv_counts_known: bool = False,
    has_rdispls: bool = False,
    name: str | None = None,
) -> Work:
    """Every rank sends its own number of rows to each position, and writes down what came unless it knew."""
    rows = 4 if has_rdispls else 3
    src, dst, group, table = _begin(srcs, dsts, replica_group, metadata_tensor, rows)

    def act(contents: dict[int, list[Content]]) -> dict[int, list[Content]]:
        results = {}
        for position, rank in enumerate(group):
            _, into, own = contents[rank]
            coming = np.array([contents[sender][2].values[0][position] for sender in group], np.int32)
            if recv_counts_known and (coming != own.values[2]).any():
                raise KernelError(
                    "collective",
                    f"rank {rank} expects {own.values[2].tolist()} rows, and {coming.tolist()} come.",
                )
            starts = own.values[3] if has_rdispls else _starts(coming)
            for i, sender in enumerate(group):
                source, _, theirs = contents[sender]
                piece = _rows(source, int(theirs.values[1][position]), int(coming[i]), repr(src))
                _put(into, int(starts[i]), piece, repr(dst))
            written = own.values.copy()
            written[2] = coming
            results[rank] = [into, Content(written)]
        return results

    settings = (as_group(replica_group), has_rdispls, recv_counts_known)
    moved, kept = [_copy(src), _copy(dst), table], (metadata_tensor,)
    return exchange("all_to_all_v", settings, group, (src, *kept), (dst, *kept), act, moved)
