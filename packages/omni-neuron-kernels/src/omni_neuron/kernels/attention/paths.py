"""Each head takes the path that is safe for it."""

from typing import Any

from omni_neuron.kernels.attention.exact_pass import exact_pass
from omni_neuron.kernels.attention.window_pass import window_pass
from omni_neuron.kernels.nki import nisa, nl


def attend(jobs: list[Any], shifts: Any, flags: Any) -> None:
    """Some heads against the shard in hand, each on the path that is safe for it.

    jobs: (head, starts of its blocks of queries); shifts and flags as `bounds.choose_paths` gives them. Where
    all heads are safe they are one stream of instructions, which no loop interrupts.
    """

    def all_in_window(_: Any) -> None:
        window_pass(jobs, shifts)

    if len(jobs) == 0:
        return
    chosen = nisa.register_alloc(flags[:, 0:1])
    nl.fori_loop(0, chosen, all_in_window)
    for i in range(len(jobs)):

        def in_window(_: Any, i: int = i) -> None:
            window_pass(jobs[i : i + 1], shifts[:, i : i + 1])

        def outside(_: Any, i: int = i) -> None:
            exact_pass(jobs[i][0], jobs[i][1])

        nisa.register_load(chosen, flags[:, nl.ds(1 + i, 1)])
        nl.fori_loop(0, chosen, in_window)
        nisa.register_load(chosen, flags[:, nl.ds(1 + len(jobs) + i, 1)])
        nl.fori_loop(0, chosen, outside)
