"""The collector pauses, and then leaves what was imported alone."""

import gc
import subprocess
import sys
import weakref
from collections.abc import Iterator

import pytest

from omni_neuron.platform.processes.permanent import permanent_imports

PRELOAD = """
import gc
import omni_neuron.platform.processes.fork_server_preload
print(gc.get_freeze_count() > 500_000, gc.isenabled(), flush=True)
"""


@pytest.fixture(autouse=True)
def _thawed() -> Iterator[None]:
    """Later tests of this process may count on collections."""
    yield
    gc.unfreeze()
    gc.enable()


class Cycle:
    def __init__(self) -> None:
        self.itself = self


def test_no_collection_in_the_body() -> None:
    with permanent_imports():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_what_exists_is_left_alone_and_what_follows_is_collected() -> None:
    with permanent_imports():
        before = weakref.ref(Cycle())
    after = weakref.ref(Cycle())
    gc.collect()
    assert before() is not None
    assert after() is None


def test_a_pause_of_the_caller_goes_on_also_after_a_failure() -> None:
    gc.disable()
    with pytest.raises(ImportError), permanent_imports():
        raise ImportError
    assert not gc.isenabled()


def test_workers_are_forked_from_a_frozen_heap() -> None:
    finished = subprocess.run(
        [sys.executable, "-c", PRELOAD], capture_output=True, text=True, timeout=110, check=False
    )
    assert finished.stdout.splitlines()[-1] == "True True", finished.stderr
