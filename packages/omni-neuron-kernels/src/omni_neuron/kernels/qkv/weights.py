"""Weights on their way through SBUF: loads of several tiles of hidden, in the order of their use."""

from dataclasses import dataclass
from typing import Any

from omni_neuron.kernels.limits import PARTITIONS
from omni_neuron.kernels.nki import nisa, nl
from omni_neuron.kernels.qkv.plan import GROUP, WEIGHT_LOADS, WEIGHT_ROWS
from omni_neuron.kernels.tiles import tiles_of


@dataclass
class Stream(nl.NKIObject):
    """loads: (first tile of hidden, tiles, first column, columns), those of one block, which then repeat."""

    weight: Any
    loads: list[Any]
    total: int
    ring: list[Any]
    started: int
    used: int

    def plan(self, setting: Any, phases: list[Any]) -> None:
        """Lay down the order of all loads, and start the first."""
        for section, first, count in phases:
            column, columns = section.span(first, count)
            for step in range(0, setting.steps, WEIGHT_ROWS):
                self.loads.append((step, min(WEIGHT_ROWS, setting.steps - step), column, columns))
        self.total = len(self.loads) * len(setting.blocks)
        self.advance()

    def advance(self) -> None:
        """Start two more loads where there is room, so that the lead grows while others wait for the DMAs."""
        for _ in range(2):
            if self.started < min(self.used + WEIGHT_LOADS - 1, self.total):
                self.start()

    def start(self) -> None:
        """Load what comes next, into the place that was used longest ago."""
        step, steps, column, columns = self.loads[self.started % len(self.loads)]
        place = self.ring[self.started % WEIGHT_LOADS]
        width = self.weight.shape[1]
        pattern = [[width, PARTITIONS], [width * PARTITIONS, steps], [1, columns]]
        source = self.weight.ap(pattern, offset=step * PARTITIONS * width + column)
        nisa.dma_copy(place[:, 0:steps, 0:columns], source)
        self.started += 1


def make_stream(weight: Any, dtype: Any) -> Any:
    """A `Stream` of weight `[hidden, columns]` without loads, and its tiles `[128, 4, 640]` of `dtype`."""
    ring = tiles_of(WEIGHT_LOADS, (PARTITIONS, WEIGHT_ROWS, GROUP * PARTITIONS), dtype)
    return Stream(weight, [], 0, ring, 0, 0)


def project_step(setting: Any, section: Any, block: int, step: int, banks: list[Any]) -> None:
    """Add the products of one tile of hidden to what `banks` hold of a phase."""
    stream = setting.stream
    if step % WEIGHT_ROWS == 0:
        stream.used += 1
        stream.advance()
    tile = stream.ring[(stream.used - 1) % WEIGHT_LOADS]
    section.multiply(setting, block, step, tile, step % WEIGHT_ROWS, banks)
