"""A folder that is built once."""

import os
import threading
import time

import pytest
from filelock import FileLock

from omni_neuron.runtime.errors import SetupError
from omni_neuron.wan22.checkpoint.cache import build_once, cache_root


def test_the_variable_moves_the_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("OMNI_NEURON_CACHE", str(tmp_path))
    assert cache_root() == tmp_path
    monkeypatch.delenv("OMNI_NEURON_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_root() == tmp_path / "xdg" / "omni-neuron"


def test_many_callers_build_once_and_see_a_whole_folder(tmp_path):
    builds, seen = [], []

    def build(folder):
        builds.append(folder)
        (folder / "first").write_text("1")
        time.sleep(0.2)
        (folder / "second").write_text("2")

    def call():
        folder = build_once(tmp_path / "deep" / "item", build, timeout_s=20)
        seen.append(sorted(path.name for path in folder.iterdir()))

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert len(builds) == 1
    assert seen == [["first", "second"]] * 4


def test_a_failed_build_leaves_nothing_and_can_be_repeated(tmp_path):
    def fail(folder):
        (folder / "half").write_text("")
        raise RuntimeError("stopped")

    with pytest.raises(RuntimeError, match="stopped"):
        build_once(tmp_path / "item", fail)
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == []
    assert build_once(tmp_path / "item", lambda folder: None).is_dir()


def test_waiting_has_an_end(tmp_path):
    with FileLock(tmp_path / ".item.lock"), pytest.raises(SetupError, match="another process"):
        build_once(tmp_path / "item", lambda folder: None, timeout_s=0.1)


def test_a_cache_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(SetupError, match="OMNI_NEURON_CACHE") as error:
        build_once(tmp_path / "file" / "item", lambda folder: None)
    assert os.linesep not in str(error.value)
