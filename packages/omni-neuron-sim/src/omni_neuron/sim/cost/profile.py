"""`profile`: what a kernel costs on a machine, from a run in the simulator."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omni_neuron.sim import envs
from omni_neuron.sim.cost.cycles import clock_hz, dma_bytes
from omni_neuron.sim.cost.perfetto import write_trace
from omni_neuron.sim.cost.schedule import ENGINES, Slot, Timeline, play
from omni_neuron.sim.execution.launch import launch
from omni_neuron.sim.machine import CHIPS, Chip
from omni_neuron.sim.memory.placement import Peak


@dataclass
class Profile:
    """Predicted costs of one launch. Times are the model's, not a device's."""

    results: list[Any]
    chip: Chip
    timelines: list[Timeline]
    sbuf: list[Peak]
    psum: list[Peak]
    useful_flops: int  # of all cores

    @property
    def makespan_s(self) -> float:
        return max(timeline.makespan_s for timeline in self.timelines)

    @property
    def pe_utilisation(self) -> float:
        """Useful FLOPs over what the PEs of all cores do in the makespan at one bf16 column per cycle."""
        tensor = self.chip.core.tensor
        rate = 2 * tensor.rows * tensor.columns * tensor.clock_hz
        peak = rate * len(self.timelines) * self.makespan_s
        return self.useful_flops / peak if peak else 0.0

    @property
    def dma_bytes(self) -> int:
        """Bytes that DMAs wrote, over all cores."""
        return sum(dma_bytes(s.event) for t in self.timelines for s in t.slots if s.engine == "dma")

    def busy_share(self, engine: str, core: int = 0) -> float:
        """The part of the makespan in which an engine of the nth core works."""
        return self.timelines[core].busy_s(engine) / self.makespan_s if self.makespan_s else 0.0

    @property
    def bottleneck(self) -> str:
        """The engine that is busy the longest, on the core that ends last."""
        last = max(self.timelines, key=lambda t: t.makespan_s)
        return max(ENGINES, key=last.busy_s)

    def critical_path(self) -> list[Slot]:
        """Instructions each of which waited for the one before, ending with the last to finish."""
        timeline = max(self.timelines, key=lambda t: t.makespan_s)
        if not timeline.slots:
            return []
        index = max(range(len(timeline.slots)), key=lambda i: timeline.slots[i].finish_s)
        path: list[Slot] = []
        while index >= 0:
            path.append(timeline.slots[index])
            index = timeline.slots[index].waits_for
        return path[::-1]

    def table(self) -> str:
        """The costs as text: one row per engine and core, then the sums."""
        lines = [f"{'core':<14}{'engine':<12}{'instructions':>12}{'cycles':>14}{'busy':>10}"]
        for timeline in self.timelines:
            counts = Counter(slot.engine for slot in timeline.slots)
            for engine in ENGINES:
                if not counts[engine]:
                    continue
                busy = timeline.busy_s(engine)
                cycles = busy * clock_hz(engine, self.chip)
                share = busy / self.makespan_s
                name = f"rank {timeline.rank}.{timeline.core}"
                lines.append(f"{name:<14}{engine:<12}{counts[engine]:>12}{cycles:>14,.0f}{share:>10.1%}")
        path = self.critical_path()
        on_path: dict[str, float] = dict.fromkeys(ENGINES, 0.0)
        ends = [slot.start_s for slot in path[1:]] + [slot.finish_s for slot in path[-1:]]
        for slot, end in zip(path, ends, strict=True):
            on_path[slot.engine] += end - slot.start_s
        ranked = sorted(on_path.items(), key=lambda item: -item[1])[:3]
        longest = ", ".join(f"{e} {t * 1e6:.1f} us" for e, t in ranked if t)
        sbuf, psum = (max(p, key=lambda x: x.amount) for p in (self.sbuf, self.psum))
        lines += [
            f"makespan {self.makespan_s * 1e6:,.2f} us, bottleneck {self.bottleneck}",
            f"critical path of {len(path)} instructions: {longest}",
            f"PE utilisation {self.pe_utilisation:.1%} ({self.useful_flops:,} useful FLOPs)",
            f"DMA {self.dma_bytes:,} bytes",
            f"SBUF peak {sbuf.amount:,} of {sbuf.limit:,} bytes per partition, PSUM {psum.amount} of "
            f"{psum.limit} banks",
        ]
        return "\n".join(lines)

    def write_perfetto(self, path: str | Path) -> None:
        """A trace for ui.perfetto.dev or chrome://tracing, one row per engine, core and rank."""
        write_trace(path, self.timelines)


def profile(
    kernel: Any,
    *args: Any,
    lnc: int | None = None,
    ranks: int = 1,
    target: str | None = None,
    precise: bool | None = None,
    seed: int = 0,
    time_limit_s: float = 600.0,
    useful_flops: int | None = None,
    **kwargs: Any,
) -> Profile:
    """Run a kernel as `simulate` does and predict its time.

    `useful_flops` replaces the FLOPs of all matmuls (transposes never count), where a kernel computes more
    than its result needs. Raises what `simulate` raises.
    """
    run = launch(kernel, args, kwargs, lnc, ranks, target, precise, seed, time_limit_s, traced=True)
    chip = CHIPS[envs.target() if target is None else envs.as_target(target)]
    timelines = play(run.traces, chip, run.cores[0].lnc)
    return Profile(run.results, chip, timelines, run.sbuf, run.psum, _flops(timelines, useful_flops))


def _flops(timelines: Sequence[Timeline], given: int | None) -> int:
    return given if given is not None else sum(s.event.flops for t in timelines for s in t.slots)
