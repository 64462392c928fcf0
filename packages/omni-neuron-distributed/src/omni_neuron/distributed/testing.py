"""Ranks for tests: real gloo processes, or one rank of a world that exists only by name.

The processes of :func:`run_ranks` fork from a server that has imported torch once, so a run does not pay
for the import. Nothing in a rank outlives the call.
"""

from __future__ import annotations

import datetime
import importlib.util
import multiprocessing
import os
import pickle
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

_COMPILER = ("torch._dynamo", "torch._dynamo.testing", "torch._functorch.aot_autograd")
_GRACE_S = 3.0  # for the other ranks to report once one has failed, and for a process to be reaped


class RankError(RuntimeError):
    """A rank died without a word, or raised what cannot cross a process boundary."""


@dataclass(frozen=True)
class _Call:
    """A function and its arguments for a process that may not know the function's module."""

    module_name: str
    module_file: str
    payload: bytes


def run_ranks(world_size: int, fn: Callable[..., Any], *args: Any, timeout_s: float = 60.0) -> list[Any]:
    """Call ``fn(rank, *args)`` in ``world_size`` gloo processes and return the results by rank.

    ``fn`` is a top-level function (of a test module too); arguments and results must pickle.
    The default process group is initialised, torch uses one thread per rank, and the caller's
    environment variables hold in the ranks.

    Raises:
        TimeoutError: some ranks were still running after ``timeout_s`` seconds.
        Exception: what the first failing rank raised; notes carry the traceback of every failed rank.
        RankError: a rank died without raising.
    """
    context = multiprocessing.get_context("forkserver")
    # A caller that has imported the compiler is going to compile in its ranks.
    context.set_forkserver_preload([__name__, *(name for name in _COMPILER if _COMPILER[0] in sys.modules)])
    module = sys.modules[fn.__module__]
    call = _Call(fn.__module__, str(module.__file__), pickle.dumps((fn, args)))
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    with tempfile.TemporaryDirectory(prefix="run_ranks_") as folder:
        store = str(Path(folder) / "store")
        processes, pipes = [], []
        try:
            for rank in range(world_size):
                receiver, sender = context.Pipe(duplex=False)
                process = context.Process(
                    target=_run_rank,
                    args=(sender, rank, world_size, store, environment, timeout_s, call),
                    name=f"rank {rank}",
                    daemon=True,
                )
                process.start()
                sender.close()
                processes.append(process)
                pipes.append(receiver)
            outcomes = _collect(pipes, timeout_s)
            if all(outcome.ok for outcome in outcomes.values()) and len(outcomes) == world_size:
                for process in processes:
                    process.join(_GRACE_S)
        finally:
            for process in processes:
                if process.is_alive():
                    process.kill()
                process.join(_GRACE_S)
            for pipe in pipes:
                pipe.close()
        exit_codes = [process.exitcode for process in processes]
    return _results(outcomes, world_size, exit_codes, timeout_s)


@contextmanager
def simulated_rank(rank: int, world_size: int) -> Iterator[None]:
    """Make this process ``rank`` of a world whose other ranks do not exist.

    Groups, layouts, sharding and tracing behave as on that rank; collectives move nothing.
    """
    from torch.testing._internal.distributed.fake_pg import FakeStore

    dist.init_process_group("fake", store=FakeStore(), rank=rank, world_size=world_size)
    try:
        yield
    finally:
        dist.destroy_process_group()


@dataclass(frozen=True)
class _Outcome:
    ok: bool
    value: Any = None
    trace: str = ""
    # When it failed, by the clock that all processes share; a death comes before what it caused.
    at: float = 0.0
    died: bool = False


def _collect(pipes: list[Connection], timeout_s: float) -> dict[int, _Outcome]:
    """Outcomes by rank in order of arrival, until all came, the time is up, or a failure's grace ended."""
    outcomes: dict[int, _Outcome] = {}
    deadline = time.monotonic() + timeout_s
    open_pipes = {pipe: rank for rank, pipe in enumerate(pipes)}
    while open_pipes and (left := deadline - time.monotonic()) > 0:
        for ready in wait(list(open_pipes), left):
            assert isinstance(ready, Connection)
            rank = open_pipes.pop(ready)
            try:
                outcomes[rank] = pickle.loads(ready.recv_bytes())
            except EOFError:
                outcomes[rank] = _Outcome(ok=False, died=True)
            if not outcomes[rank].ok:
                deadline = min(deadline, time.monotonic() + _GRACE_S)
    return outcomes


def _results(
    outcomes: dict[int, _Outcome], world_size: int, exit_codes: list[int | None], timeout_s: float
) -> list[Any]:
    failures = [(rank, outcome) for rank, outcome in outcomes.items() if not outcome.ok]
    if failures:
        failures.sort(key=lambda failure: failure[1].at)
        rank, first = failures[0]
        error = first.value or RankError(f"rank {rank} of {world_size} failed first")
        for rank, outcome in failures:
            story = f"died with exit code {exit_codes[rank]}" if outcome.died else outcome.trace
            error.add_note(f"rank {rank}: {story}")
        raise error
    late = [rank for rank in range(world_size) if rank not in outcomes]
    if late:
        raise TimeoutError(f"ranks {late} of {world_size} did not finish within {timeout_s} s")
    return [outcomes[rank].value for rank in range(world_size)]


def _run_rank(
    sender: Connection,
    rank: int,
    world_size: int,
    store: str,
    environment: dict[str, str],
    timeout_s: float,
    call: _Call,
) -> None:
    os.environ.clear()
    os.environ.update(environment)
    torch.set_num_threads(1)
    try:
        dist.init_process_group(
            "gloo",
            init_method=f"file://{store}",
            rank=rank,
            world_size=world_size,
            timeout=datetime.timedelta(seconds=timeout_s),
        )
        _ensure_module(call)
        fn, args = pickle.loads(call.payload)
        message = pickle.dumps(_Outcome(ok=True, value=fn(rank, *args)))
    except BaseException as error:
        failure = _Outcome(ok=False, trace=traceback.format_exc(), at=time.monotonic())
        try:
            message = pickle.dumps(replace(failure, value=error))
            pickle.loads(message)
        except Exception:
            message = pickle.dumps(failure)
        sender.send_bytes(message)
        os._exit(1)
    sender.send_bytes(message)
    # A rank that leaves early would cut its peers' connections in mid-collective.
    dist.barrier()
    dist.destroy_process_group()


def _ensure_module(call: _Call) -> None:
    """Make the function's module importable by its name, as pytest's importlib mode does in the parent."""
    if call.module_name in sys.modules:
        return
    try:
        if importlib.util.find_spec(call.module_name) is not None:
            return
    except ModuleNotFoundError:
        pass
    spec = importlib.util.spec_from_file_location(call.module_name, call.module_file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[call.module_name] = module
    spec.loader.exec_module(module)
