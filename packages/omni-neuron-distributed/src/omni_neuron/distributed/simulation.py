"""All ranks of a world as threads of this process, whose collectives move data.

Nothing here opens a socket or starts a process, so 64 ranks cost little more than their arithmetic.
What a real backend adds (transport, time limits, its own set of dtypes) is not simulated.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from omni_neuron.distributed.groups import ParallelGroup
from omni_neuron.distributed.testing import simulated_rank

_ops = torch.ops._c10d_functional


class SimulationError(RuntimeError):
    """Ranks of one group called different collectives."""


def simulate_groups(world_size: int, build: Callable[[], Any]) -> list[Any]:
    """What ``build()`` makes on each rank of a world that exists by name only, such as a context.

    Its groups outlive that world: they carry the names and orders that :func:`simulate_ranks` needs.
    """
    built = []
    for rank in range(world_size):
        with simulated_rank(rank, world_size):
            built.append(build())
    return built


def simulate_ranks(
    groups: Sequence[Any],
    fn: Callable[..., Any],
    *args: Any,
    list_order: bool = False,
    timeout_s: float = 60.0,
) -> list[Any]:
    """Call ``fn(groups[rank], *args)`` on one thread per rank and return the results by rank.

    The functional collectives that ``fn`` calls exchange data between the threads.

    Args:
        groups: one object per rank from :func:`simulate_groups`: groups, or dataclasses, sequences and
            mappings of them.
        fn: what a rank does; it must not ask ``torch.distributed`` for its rank or world.
        list_order: follow the list of each group, as a device does, not its process group's order.
        timeout_s: longest wait of a collective for its other ranks, and of this call for the ranks that are
            still at work when one has failed.

    Raises:
        SimulationError: ranks of a group called different collectives.
        threading.BrokenBarrierError: a rank of a group did not come within ``timeout_s``.
        Exception: what the first failing rank raised.
    """
    exchange = _Exchange(timeout_s)
    results: list[Any] = [None] * len(groups)
    errors: list[BaseException] = []

    def run(rank: int) -> None:
        try:
            places = {
                group.group_name: (
                    group.rank_in_group if list_order else group.process_group_order[group.rank_in_group],
                    group.size,
                )
                for group in _parallel_groups(groups[rank])
            }
            with torch.no_grad(), _SimulatedCollectives(exchange, places):
                results[rank] = fn(groups[rank], *args)
        except BaseException as error:
            errors.append(error)
            exchange.abort()

    threads = [threading.Thread(target=run, args=(rank,), daemon=True) for rank in range(len(groups))]
    for thread in threads:
        thread.start()
    for thread in threads:
        while thread.is_alive():
            thread.join(timeout_s)
            if errors:
                break
    if errors:
        raise errors[0]
    return results


class _Exchange:
    """Where the threads of a group meet and see each other's values."""

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._lock = threading.Lock()
        self._meetings: dict[str, tuple[threading.Barrier, list[Any]]] = {}
        self._aborted = False

    def meet(
        self, name: str, place: int, size: int, operator: str, value: Any, take: Callable[[list[Any]], Any]
    ) -> Any:
        """What ``take`` makes of every member's value, by place, while all members wait for each other."""
        with self._lock:
            if name not in self._meetings:
                self._meetings[name] = threading.Barrier(size), [None] * size
            barrier, table = self._meetings[name]
            if self._aborted:
                barrier.abort()
        table[place] = operator, value
        barrier.wait(self._timeout_s)
        called = [operator for operator, _ in table]
        agree = len(set(called)) == 1
        taken = take([value for _, value in table]) if agree else None
        # Nobody changes its value, or brings the next one, before everyone has read this one.
        barrier.wait(self._timeout_s)
        if not agree:
            raise SimulationError(f"ranks of group {name!r} called {called}: all must call the same.")
        return taken

    def abort(self) -> None:
        with self._lock:
            self._aborted = True
            for barrier, _ in self._meetings.values():
                barrier.abort()


class _SimulatedCollectives(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """The functional collectives of one rank, done through the exchange at once."""

    def __init__(self, exchange: _Exchange, places: Mapping[str, tuple[int, int]]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._exchange = exchange
        self._places = places

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func.namespace != "_c10d_functional":
            return func(*args, **(kwargs or {}))
        if func is _ops.wait_tensor.default:
            return args[0]
        place, size = self._places[args[-1]]

        def meet(value: Any, take: Callable[[list[Any]], Any]) -> Any:
            return self._exchange.meet(args[-1], place, size, str(func), value, take)

        match func:
            case _ops.all_reduce.default:
                return meet(args[0], lambda values: torch.stack(values).sum(0))
            case _ops.all_gather_into_tensor.default:
                return meet(args[0], torch.cat)
            case _ops.reduce_scatter_tensor.default:
                return meet(args[0], lambda values: torch.stack(values).sum(0).chunk(size)[place].clone())
            case _ops.all_to_all_single.default:
                x, receives, sends, _ = args

                def received(sent: list[Any]) -> torch.Tensor:
                    parts = [parts[place] for parts in sent]
                    if [part.shape[0] for part in parts] != list(receives):
                        raise SimulationError(f"group {args[-1]!r}: {receives} parts were expected.")
                    return torch.cat(parts)

                return meet(x.split(list(sends)), received)
            case _ops.broadcast.default:
                return meet(args[0], lambda values: values[args[1]].clone())
        raise SimulationError(f"{func} is no collective of omni_neuron.distributed.collectives.")


def _parallel_groups(value: Any) -> Iterator[ParallelGroup]:
    """The groups of more than one rank inside ``value``."""
    if isinstance(value, ParallelGroup):
        if value.size > 1:
            yield value
    elif is_dataclass(value):
        for each in fields(value):
            yield from _parallel_groups(getattr(value, each.name))
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _parallel_groups(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _parallel_groups(item)
