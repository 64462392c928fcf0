"""Three stages that fill parameters: page-cache prefetch, reading this rank's blocks, delivery.

Each stage is a thread; the caller's thread supervises them and reports progress. Bytes that need no cast go
from the file straight into a parameter in host memory. The others pass through a few staging buffers, and
parameters of another device through host memory of bounded size, so that what a rank needs beside its shard
does not grow with the checkpoint.
"""

from __future__ import annotations

import queue
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import torch

from omni_neuron.distributed.loading.descriptors import Descriptors
from omni_neuron.distributed.loading.page_cache import (
    FileRange,
    Prefetch,
    ranges_to_prefetch,
    requests,
    will_need,
)
from omni_neuron.distributed.loading.placement import volume
from omni_neuron.distributed.loading.read_plan import BLOCK_BYTES, Block, ParameterPlan
from omni_neuron.distributed.loading.stages import Stages, stages
from omni_neuron.distributed.loading.stored_tensor import read_into
from omni_neuron.distributed.loading.target import Target

BUFFERS = 3
HOST_BYTES = 64 << 20
# What a rank's anonymous memory may rise above its shard: the buffers, and 20 MiB for threads and plans. With
# another device than the host, HOST_BYTES or the largest parameter takes the place of the shard.
CONSTANT_BYTES = BUFFERS * BLOCK_BYTES + (20 << 20)

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class _Delivery:
    """A block that was read, into ``buffer`` or, where that is None, in place; without a block, the end."""

    target: Target
    block: Block | None = None
    buffer: torch.Tensor | None = None


class Pipeline:
    """The state that the stages share; each field is written by one of them."""

    def __init__(
        self,
        plans: Sequence[ParameterPlan],
        targets: Mapping[str, Target],
        prefetch: Prefetch,
        owner: Stages,
    ) -> None:
        self._plans = plans
        self._targets = targets
        self._prefetch = prefetch
        self._stages = owner
        self._deliveries: queue.Queue[_Delivery] = queue.Queue()
        self._buffers: queue.Queue[torch.Tensor] = queue.Queue()
        for _ in range(BUFFERS):
            self._buffers.put(torch.empty(BLOCK_BYTES, dtype=torch.uint8, device="cpu"))
        self._position = 0  # written by read
        self._opened_bytes = 0  # written by read
        self._closed_bytes = 0  # written by deliver
        self.delivered_bytes = 0  # written by deliver
        self.complete = 0  # written by deliver

    def prefetch(self) -> None:
        """First stage: ask for what will be read next, not too far ahead."""
        ahead = self._prefetch.ahead_bytes * self._prefetch.ranks

        def near(part: FileRange) -> bool:
            return part.position <= self._position + ahead

        with Descriptors() as files:
            for part in requests(ranges_to_prefetch(self._plans, self._prefetch)):
                if part.position + part.size <= self._position:
                    continue  # reading has overtaken it
                self._stages.wait_until(partial(near, part))
                will_need(files[part.file], part)

    def read(self) -> None:
        """Second stage: read this rank's blocks in the order of the files."""
        with Descriptors() as files:
            for plan in self._plans:
                target = self._targets[plan.name]
                self._wait_for_host_memory(target.staged_bytes)
                target.allocate()
                for block in plan.blocks:
                    self._read_block(files, target, block)
                self._deliveries.put(_Delivery(target))

    def deliver(self) -> None:
        """Third stage: cast what was staged into its parameter, and move complete ones to their device."""
        while self.complete < len(self._plans):
            delivery = self._stages.take(self._deliveries)
            target, block = delivery.target, delivery.block
            if block is None:
                target.finish()
                self._closed_bytes += target.staged_bytes
                self.complete += 1
            else:
                if delivery.buffer is not None:
                    target.put(block, delivery.buffer)
                    self._buffers.put(delivery.buffer)
                target.written += volume(block.write)
                self.delivered_bytes += block.useful_bytes
            self._stages.moved()

    def _read_block(self, files: Descriptors, target: Target, block: Block) -> None:
        self._position = block.position
        self._stages.moved()
        memory, buffer = target.memory_of(block), None
        if memory is None:
            buffer = self._stages.take(self._buffers)
            memory = buffer[: block.size]
        read_into(files[block.tensor.file], block.tensor, block.offset, memory)
        self._deliveries.put(_Delivery(target, block, buffer))

    def _wait_for_host_memory(self, size: int) -> None:
        """Let at most HOST_BYTES, or one parameter, be on their way to a device."""

        def room() -> bool:
            on_the_way = self._opened_bytes - self._closed_bytes
            return not on_the_way or on_the_way + size <= HOST_BYTES

        if size:
            self._stages.wait_until(room)
            self._opened_bytes += size


def run_pipeline(
    what: str,
    plans: Sequence[ParameterPlan],
    targets: Mapping[str, Target],
    prefetch: Prefetch,
    progress: Progress | None,
    stall_s: float,
) -> None:
    """Fill every target; the caller's thread reports progress and sees what fails.

    Raises:
        CheckpointError: a file ended too early or could not be read.
        TimeoutError: nothing moved for ``stall_s`` seconds.
    """
    total = sum(block.useful_bytes for plan in plans for block in plan.blocks)
    reported = -1
    with stages(what) as owner:
        pipeline = Pipeline(plans, targets, prefetch, owner)

        def report() -> None:
            nonlocal reported
            if progress is not None and pipeline.delivered_bytes != reported:
                reported = pipeline.delivered_bytes
                progress(reported, total)

        owner.start("omni-neuron-prefetch", pipeline.prefetch)
        owner.start("omni-neuron-read", pipeline.read)
        owner.start("omni-neuron-deliver", pipeline.deliver)
        owner.supervise(what, lambda: pipeline.complete == len(plans), report, stall_s)
