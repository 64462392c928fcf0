"""What the tests of this package share."""

import os
import sys
from collections.abc import Callable, Iterator
from importlib import util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from omni_neuron.runtime.devices import chip_count

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ.setdefault("VLLM_LOGGING_LEVEL", "WARNING")


def pytest_configure(config: pytest.Config) -> None:
    """The CPU for the whole session, since the platform is chosen when the engine is first imported.

    A device only where there is one and its tests were asked for.
    """
    if config.option.markexpr != "hardware" or not chip_count():
        os.environ["VLLM_NEURON_CPU_MODE"] = "1"


MakeWorker = Callable[..., Any]


def _helper(name: str) -> ModuleType:
    """A module of this folder under a name that a pickled function can be found by."""
    spec = util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def make_worker() -> Iterator[MakeWorker]:
    """Makes workers in this process, one at a time; the last one's world ends with the module."""
    from vllm_omni.diffusion.data import OmniDiffusionConfig

    from omni_neuron.platform.worker import NeuronDiffusionWorker

    workers: list[Any] = []

    def make(**fields: Any) -> Any:
        while workers:
            workers.pop().shutdown()
        config = OmniDiffusionConfig(
            model=None, model_class_name="WanPipeline", dtype=fields.pop("dtype", None) or "float32", **fields
        )
        worker = NeuronDiffusionWorker(0, 0, config, skip_load_model=True)
        workers.append(worker)
        return worker

    yield make
    while workers:
        workers.pop().shutdown()
    for stream in (sys.stdout, sys.stderr):
        vars(stream).pop("write", None)  # the worker's prefix


@pytest.fixture(scope="session")
def two_ranks() -> list[dict[str, Any]]:
    """What `rank_cases.both_branches` finds in a world of two ranks, each a real worker, by rank."""
    return _run_ranks(2, "both_branches")


@pytest.fixture(scope="session")
def four_ranks() -> list[dict[str, Any]]:
    """What `rank_cases.placed_groups` finds with the ranks 3, 1, 0, 2 in the layout's four positions."""
    return _run_ranks(4, "placed_groups", "3,1,0,2")


def _run_ranks(world_size: int, case: str, *arguments: Any) -> list[dict[str, Any]]:
    from omni_neuron.distributed.testing import run_ranks
    from omni_neuron.platform.processes.fork_server import start_fork_server

    start_fork_server()  # the ranks fork from it, so the engine is imported once
    return run_ranks(world_size, getattr(_helper("rank_cases"), case), *arguments, timeout_s=240)
