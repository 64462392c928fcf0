"""All cores of all ranks of one launch, and the points at which they meet.

Each core runs in a thread of its own, but only one at a time: it runs until it has to wait for others,
then the next that can go on does. Runs are therefore repeatable, and when nobody can go on the report says
who waits where.
"""

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from omni_neuron.sim.errors import KernelError, SourceLine, kernel_line
from omni_neuron.sim.execution.core import Core, entered
from omni_neuron.sim.execution.origins import Origins
from omni_neuron.sim.machine import Generation
from omni_neuron.sim.memory.buffer import Allocation, Buffer
from omni_neuron.sim.numerics.formats import Array

Member = tuple[int, int]  # rank, core


@dataclass
class Meeting:
    """A point that several cores must reach; the last to come acts for all."""

    members: tuple[Member, ...]
    payloads: dict[Member, Any] = field(default_factory=dict)
    results: dict[Member, Any] = field(default_factory=dict)
    done: bool = False


@dataclass
class _Waiting:
    what: str
    where: SourceLine
    meeting: Meeting


class Abandoned(BaseException):
    """Unwinds the other cores when one has failed."""


class World:
    """One launch: its settings, its shared memory and its meetings."""

    def __init__(
        self,
        target: Generation,
        lnc: int = 1,
        ranks: int = 1,
        precise: bool = True,
        grid: bool = False,
        seed: int = 0,
        time_limit_s: float = 600.0,
        stochastic_rounding: bool = False,
    ) -> None:
        self.target = target
        self.grid = grid
        self.lnc = lnc
        self.ranks = ranks
        self.precise = precise
        self.seed = seed
        self.time_limit_s = time_limit_s
        self.stochastic_rounding = stochastic_rounding
        self.origins = Origins()
        self.epochs = [0] * ranks
        self.members: dict[Member, Core] = {}
        self._shared: dict[tuple[int, str, int], Buffer] = {}
        self._meetings: dict[Any, Meeting] = {}
        self._sequence: dict[Any, int] = {}
        self._baton = threading.Condition()
        self._turn: Member | None = None
        self._ready: deque[Member] = deque()
        self._waiting: dict[Member, _Waiting] = {}
        self._failure: BaseException | None = None

    @property
    def cores(self) -> int:
        return self.ranks * self.lnc

    def shared(self, core: Core, allocation: Allocation, content: Array | None) -> Buffer:
        """The buffer in shared HBM that both cores of a rank allocate: the nth of its name or line."""
        name = allocation.name if allocation.named else str(allocation.where)
        core.shared_names[name] += 1
        key = (core.rank, name, core.shared_names[name])
        if key not in self._shared:
            self._shared[key] = Buffer(allocation, self.precise, content)
        found = self._shared[key].allocation
        if (found.shape, found.dtype) != (allocation.shape, allocation.dtype):
            raise core.error(
                "lnc-divergence",
                f"a tensor in shared_hbm is {allocation} here and {found} on the other core.",
            )
        return self._shared[key]

    # Meetings

    def meet(
        self,
        core: Core,
        key: Any,
        members: tuple[Member, ...],
        what: str,
        payload: Any,
        act: Callable[[dict[Member, Any]], dict[Member, Any]],
    ) -> Any:
        """Wait for every member's next meeting of `key`; returns this member's result of `act`."""
        me = (core.rank, core.core_id)
        turn = self._sequence.get((key, me), 0)
        self._sequence[(key, me)] = turn + 1
        meeting = self._meetings.setdefault((key, turn), Meeting(members))
        meeting.payloads[me] = payload
        if set(meeting.payloads) == set(members):
            del self._meetings[(key, turn)]
            meeting.results = act(meeting.payloads)
            meeting.done = True
            for rank in {rank for rank, _ in members}:
                self.epochs[rank] += 1
            for member in members:
                if member in self._waiting and self._waiting[member].meeting is meeting:
                    del self._waiting[member]
                    self._ready.append(member)
        else:
            self._waiting[me] = _Waiting(what, kernel_line(), meeting)
            self._pass_on(me)
        return meeting.results.get(me)

    # Turns

    def run(self, cores: list[Core], program: Callable[[Core], Any]) -> list[Any]:
        """Run a program on every core; the first failure, or a deadlock, is raised here."""
        self.members = {(core.rank, core.core_id): core for core in cores}
        if len(cores) == 1:
            self._turn = (cores[0].rank, cores[0].core_id)
            with entered(cores[0]):
                return [program(cores[0])]
        results: dict[Member, Any] = {}
        threads = [
            threading.Thread(target=self._thread, args=(core, program, results), daemon=True)
            for core in cores
        ]
        self._ready.extend((core.rank, core.core_id) for core in cores[1:])
        self._turn = (cores[0].rank, cores[0].core_id)
        for thread in threads:
            thread.start()
        end = time.monotonic() + self.time_limit_s
        for thread in threads:
            thread.join(max(end - time.monotonic(), 0.0))
        if self._failure is None and len(results) < len(cores):
            self._fail(TimeoutError(f"The kernel ran longer than the {self.time_limit_s} s it was given."))
        if self._failure is not None:
            raise self._failure
        return [results[(core.rank, core.core_id)] for core in cores]

    def _thread(self, core: Core, program: Callable[[Core], Any], results: dict[Member, Any]) -> None:
        me = (core.rank, core.core_id)
        try:
            self._await_turn(me)
            with entered(core):
                results[me] = program(core)
            self._next(me)
        except Abandoned:
            pass
        except BaseException as failure:
            self._fail(failure)

    def _fail(self, failure: BaseException) -> None:
        with self._baton:
            if self._failure is None:
                self._failure = failure
            self._baton.notify_all()

    def _next(self, me: Member) -> None:
        """Hand the turn to the next core that can run."""
        with self._baton:
            if self._ready:
                self._turn = self._ready.popleft()
            elif self._waiting:
                raise self._deadlock()
            self._baton.notify_all()

    def _pass_on(self, me: Member) -> None:
        if self.cores == 1:
            raise self._deadlock()
        self._next(me)
        self._await_turn(me)

    def _await_turn(self, me: Member) -> None:
        with self._baton:
            came = self._baton.wait_for(
                lambda: self._turn == me or self._failure is not None, self.time_limit_s
            )
            if self._failure is not None or not came:
                raise Abandoned

    def _deadlock(self) -> KernelError:
        lines = []
        for (rank, core), waiting in sorted(self._waiting.items()):
            missing = [m for m in waiting.meeting.members if m not in waiting.meeting.payloads]
            names = ", ".join(
                f"rank {r} core {c}{'' if (r, c) in self._waiting else ' (finished)'}" for r, c in missing
            )
            lines.append(f"rank {rank} core {core} waits in {waiting.what} at {waiting.where} for {names}")
        first = min(self._waiting.items())[1]
        return KernelError("deadlock", "nobody can go on: " + "; ".join(lines) + ".", where=first.where)
