"""Bad requests and a dead worker, at one rank and at two, in two engines of one process."""

from __future__ import annotations

import json
import sys
from typing import Any

import engine_faults
import pytest
from command_process import running

pytestmark = pytest.mark.engine

ERROR_WITHIN_S = 10.0


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """`running` sees to it that no process and no shared memory is left."""
    program = [sys.executable, engine_faults.__file__]
    with running("refusals", cwd=tmp_path_factory.mktemp("engine"), program=program) as process:
        finished = process.finish()
    assert finished.status == 0, finished.stderr[-4000:]
    result: dict[str, Any] = json.loads(finished.stdout)
    return result


@pytest.mark.parametrize("layout", ["tp1", "tp2"])
@pytest.mark.parametrize("field", engine_faults.BAD)
def test_a_bad_request_is_the_callers_error_at_once(outcome: dict[str, Any], layout: str, field: str) -> None:
    refused = outcome[layout]["refused"][field]
    assert refused["error"] == "InputError"
    assert refused["message"].startswith(f"{field} is ")
    assert refused["seconds"] < 2


@pytest.mark.parametrize(("layout", "ranks"), [("tp1", 1), ("tp2", 2)])
def test_the_engine_serves_the_next_request(outcome: dict[str, Any], layout: str, ranks: int) -> None:
    assert len(outcome[layout]["good"]["digests"]) == ranks


def test_a_worker_that_is_killed_fails_its_request_soon(outcome: dict[str, Any]) -> None:
    killed = outcome["killed"]
    assert killed["error"] == "EngineError"
    assert (
        killed["message"] == "DiffusionWorker-1 died (SIGKILL), and the request with it; start a new engine."
    )
    assert killed["after_s"] < ERROR_WITHIN_S


def test_a_request_to_a_dead_engine_is_an_error(outcome: dict[str, Any]) -> None:
    assert outcome["next"]["error"] == "EngineError"
    assert outcome["next"]["seconds"] < ERROR_WITHIN_S
