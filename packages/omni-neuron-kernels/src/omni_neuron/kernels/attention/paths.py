"""Each head takes the path that is safe for it.

A run-time loop that a register lets run once or not at all stands for a branch, which the kernel language
does not have. Its bodies are objects: they carry what a nested function would have to capture.
"""

from dataclasses import dataclass
from typing import Any

from omni_neuron.kernels.attention.exact_pass import exact_pass
from omni_neuron.kernels.attention.window_pass import window_pass
from omni_neuron.kernels.nki import nisa, nl


@dataclass
class InWindow(nl.NKIObject):
    """`window_pass` as the body of a loop."""

    jobs: list[Any]
    shifts: Any

    def __call__(self, _: Any) -> None:
        window_pass(self.jobs, self.shifts)


@dataclass
class Outside(nl.NKIObject):
    """`exact_pass` as the body of a loop."""

    head: Any
    starts: list[int]

    def __call__(self, _: Any) -> None:
        exact_pass(self.head, self.starts)


def attend(jobs: list[Any], shifts: Any, flags: Any) -> None:
    """Some heads against the shard in hand, each on the path that is safe for it.

    jobs: (head, starts of its blocks of queries); shifts and flags as `bounds.choose_paths` gives them. Where
    all heads are safe they are one stream of instructions, which no loop interrupts.
    """
    if len(jobs) > 0:
        chosen = nisa.register_alloc(flags[:, 0:1])
        nl.fori_loop(0, chosen, InWindow(jobs, shifts))
        for i in range(len(jobs)):
            nisa.register_load(chosen, flags[:, nl.ds(1 + i, 1)])
            nl.fori_loop(0, chosen, InWindow(jobs[i : i + 1], shifts[:, i : i + 1]))
            nisa.register_load(chosen, flags[:, nl.ds(1 + len(jobs) + i, 1)])
            nl.fori_loop(0, chosen, Outside(jobs[i][0], jobs[i][1]))
