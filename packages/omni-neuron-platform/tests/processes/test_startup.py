import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from omni_neuron.distributed.errors import CheckpointError
from omni_neuron.platform.processes.startup import FOLDER_KEY, reported_failure, startup_failure
from omni_neuron.runtime.errors import InputError


def _fail(folder: Path, rank: int, error: Exception) -> None:
    config = SimpleNamespace(additional_config={FOLDER_KEY: str(folder)})
    with pytest.raises(type(error)), reported_failure(config, rank):
        raise error


def test_no_failure_leaves_nothing(tmp_path: Path) -> None:
    with reported_failure(SimpleNamespace(additional_config={FOLDER_KEY: str(tmp_path)}), 0):
        pass
    assert startup_failure(tmp_path) is None


def test_bad_input_of_any_rank_goes_before_the_peers_that_fail_because_of_it(tmp_path: Path) -> None:
    _fail(tmp_path, 0, RuntimeError("connection reset by peer"))
    _fail(tmp_path, 1, CheckpointError("the checkpoint lacks a tensor"))
    failure = startup_failure(tmp_path)
    assert isinstance(failure, InputError)
    assert str(failure) == "the checkpoint lacks a tensor"


@pytest.mark.parametrize(
    ("error", "reason"),
    [(MemoryError(), "MemoryError"), (ValueError("not enough values"), "not enough values")],
)
def test_another_failure_is_not_called_bad_input(tmp_path: Path, error: Exception, reason: str) -> None:
    _fail(tmp_path, 0, error)
    failure = startup_failure(tmp_path)
    assert type(failure) is RuntimeError
    assert str(failure) == reason


def test_without_a_folder_the_failure_passes_through() -> None:
    with pytest.raises(KeyError), reported_failure(SimpleNamespace(additional_config=None), 0):
        raise KeyError("x")


def test_a_record_that_was_cut_short_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "0.part").write_text('{"bad_in')
    assert startup_failure(tmp_path) is None


def test_a_failure_whose_folder_is_gone_keeps_its_own_reason(tmp_path: Path) -> None:
    _fail(tmp_path / "gone", 0, KeyError("weight"))


def test_the_record_is_json(tmp_path: Path) -> None:
    _fail(tmp_path, 3, OSError("no space"))
    assert json.loads((tmp_path / "3.json").read_text()) == {"bad_input": False, "reason": "no space"}
