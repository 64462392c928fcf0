"""What the compiler must know about each process group: the whole partition of the world it belongs to.

Groups made by ``torch.distributed.new_group`` reach a device compiler as a name only. The partition is
registered under that name, from the layout that the live groups were built from.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch.distributed as dist

from omni_neuron.distributed.errors import LayoutError
from omni_neuron.distributed.layout import DIMENSIONS, ParallelLayout
from omni_neuron.runtime.adapter import get_adapter


def register_replica_groups(
    layout: ParallelLayout, names_to_process_groups: Mapping[str, dist.ProcessGroup | None]
) -> None:
    """Register the partition of every live group of ``layout``, keyed by its ``group_name``.

    Args:
        layout: the layout that fills the world.
        names_to_process_groups: dimension (``"tp"``, ``"cp"``, ``"cfg"``, ``"text_encoder"``) to this
            rank's live group; None, or no entry, for a dimension of size 1.

    Raises:
        LayoutError: a live group's ranks are not those of the layout, or a dimension above 1 has no
            group. Nothing is registered then.
    """
    rank = dist.get_rank() if dist.is_initialized() else 0
    layout.check_world_size(dist.get_world_size() if dist.is_initialized() else 1)
    partitions: dict[str, list[tuple[int, ...]]] = {}
    for name in dict.fromkeys((*DIMENSIONS, *names_to_process_groups)):
        expected = layout.group_of(name, rank)
        group = names_to_process_groups.get(name)
        live = (rank,) if group is None else tuple(dist.get_process_group_ranks(group))
        # `new_group` sorts its ranks, so only the layout knows their order.
        if sorted(live) != sorted(expected):
            raise LayoutError(
                f"live {name} group {live} of rank {rank} must hold the ranks {expected} of {layout}: "
                "build the groups from this layout."
            )
        if group is not None and len(expected) > 1:
            partitions[group.group_name] = layout.groups(name)
    adapter = get_adapter()
    for group_name, partition in partitions.items():
        adapter.register_replica_groups(group_name, partition)
