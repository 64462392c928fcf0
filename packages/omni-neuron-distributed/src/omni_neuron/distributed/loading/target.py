"""Where one parameter's value is put together, and how it becomes the parameter."""

from __future__ import annotations

import math
import mmap

import torch
from torch import nn

from omni_neuron.distributed.loading.placement import Box, volume
from omni_neuron.distributed.loading.read_plan import Block, ParameterPlan, first_entry, spans, strides


class Target:
    """A parameter that is being filled.

    Args:
        parameter: allocated (filled in place) or on the meta device (materialised).
        plan: what fills it.
        dtype: of the value.
        device: where a meta parameter is materialised.
    """

    def __init__(
        self, parameter: nn.Parameter, plan: ParameterPlan, dtype: torch.dtype, device: torch.device
    ) -> None:
        self.parameter = parameter
        self.plan = plan
        self.dtype = dtype
        self.device = device if parameter.is_meta else parameter.device
        self.in_place = not parameter.is_meta and parameter.dtype == dtype
        self.written = sum(map(volume, plan.placement.padding))
        self.value: torch.Tensor | None = None

    @property
    def staged_bytes(self) -> int:
        """Host memory that the value takes on its way to another device; 0 when its home is the host."""
        if self.device.type == "cpu":
            return 0
        return math.prod(self.plan.placement.shape) * self.dtype.itemsize

    @property
    def host(self) -> torch.Tensor:
        """The host memory that is filled."""
        if self.value is None:
            raise RuntimeError(f"{self.plan.name} must be allocated before it is filled.")
        return self.value

    def allocate(self) -> None:
        """Host memory of the parameter's shape, zeroed where no tensor of the checkpoint goes."""
        shape = self.plan.placement.shape
        if self.staged_bytes:
            # A mapping of its own goes back to the system at once, which freed memory of malloc may not.
            mapped = mmap.mmap(-1, self.staged_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            self.value = torch.frombuffer(mapped, dtype=self.dtype).view(shape)
        elif self.in_place and self.device.type == "cpu":
            self.value = self.parameter.data
        else:
            self.value = torch.empty(shape, dtype=self.dtype, device="cpu")
        self.plan.placement.zero_padding(self.value)

    def memory_of(self, block: Block) -> torch.Tensor | None:
        """The flat memory that the block's bytes are as they stand in the file; None when there is none."""
        placement, host = self.plan.placement, self.host
        as_stored = (
            block.tensor.dtype == self.dtype and not placement.transposed and placement.divisor is None
        )
        if not (as_stored and block.contiguous and host.is_contiguous()):
            return None
        start = _first_of_run(block.write, host.shape)
        return None if start is None else host.view(-1)[start : start + volume(block.write)]

    def put(self, block: Block, buffer: torch.Tensor) -> None:
        """Write a block that was read into a staging buffer."""
        self.plan.placement.put(self.host, block.write, block.entries(buffer))

    def finish(self) -> None:
        """Move a complete value to its device.

        Raises:
            RuntimeError: an entry was not written, or twice.
        """
        size = math.prod(self.plan.placement.shape)
        if self.written != size:
            raise RuntimeError(
                f"{self.plan.name} was filled with {self.written} entries, which must be {size}: "
                "report this as a bug."
            )
        if self.device.type == "cpu":
            return
        # Whole and contiguous, in the final dtype: devices neither cast nor scatter while they copy.
        if self.in_place:
            self.parameter.data.copy_(self.host)
            self.value = self.parameter.data
        else:
            self.value = self.host.to(self.device)

    def result(self) -> nn.Parameter:
        """The filled parameter: itself, or a new one in place of a meta parameter."""
        if self.in_place:
            return self.parameter
        if not self.parameter.is_meta:
            self.parameter.data = self.host
            return self.parameter
        filled = nn.Parameter(self.host, requires_grad=self.parameter.requires_grad)
        filled.__dict__.update(self.parameter.__dict__)
        return filled


def _first_of_run(box: Box, shape: torch.Size) -> int | None:
    """Index of the box's first entry in the flat tensor, or None when its entries lie apart."""
    steps = strides(tuple(shape))
    if spans(box, steps)[0] != volume(box):
        return None
    return first_entry(box, steps)
