"""Preparation of a core: rules in this process, their order against recorded wheels in a process of its own.

The folder `recorded_wheels` holds the names that the Neuron wheels offer and what their import is known to do
to a process; it writes down who calls what, and computes nothing.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from omni_neuron.platform.processes import core_setup
from omni_neuron.platform.processes.core_setup import announce_sizes, prepare_core
from omni_neuron.runtime.errors import SetupError
from omni_neuron.runtime.mode import Mode, ModeKind

HERE = Path(__file__).parent
CORES = "NEURON_RT_VISIBLE_CORES"


def _metadata(folder: Path, name: str, version: str, entry_points: str = "") -> None:
    """What an installer would leave beside the package."""
    package = name.replace("-", "_")
    info = folder / f"{package}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (info / "entry_points.txt").write_text(entry_points)
    files = (folder / package).rglob("*.py")
    (info / "RECORD").write_text("".join(f"{file.relative_to(folder)},,\n" for file in files))


@pytest.fixture(scope="module")
def rank(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    site = tmp_path_factory.mktemp("site")
    shutil.copytree(HERE / "recorded_wheels", site, dirs_exist_ok=True)
    _metadata(
        site,
        "vllm-neuron",
        "0.29.0.1.2.0",
        "[vllm.platform_plugins]\nneuron = vllm_neuron:register\n",
    )
    _metadata(site, "libtorch-neuronx-lite", "2.13.0.1.0.2651")
    hidden = {"VLLM_NEURON_CPU_MODE", "VLLM_NEURON_BACKEND", CORES}
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    done = subprocess.run(
        [sys.executable, str(HERE / "recorded_worker.py")],
        env={**environment, "PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    results = [line.partition("RESULT ")[2] for line in done.stdout.splitlines() if "RESULT " in line]
    assert results, done.stderr[-4000:]
    found: dict[str, Any] = json.loads(results[0])
    return found


def test_on_a_device_the_steps_come_in_the_order_of_the_native_route(rank: dict[str, Any]) -> None:
    order = [event["event"] for event in rank["events"]]
    assert order[:3] == ["device count", "compile backend", "same node"]
    assert set(order[3:]) == {"process group"}


def test_the_library_finds_one_core_one_thread_and_no_stale_address(rank: dict[str, Any]) -> None:
    (loaded,) = (event for event in rank["events"] if event["event"] == "compile backend")
    assert loaded["threads"] == 1
    assert loaded["variables"] == {
        CORES: "5",
        "NEURON_RT_MAP_HBM": "1",
        "NEURON_RT_ROOT_COMM_ID": None,
        "NEURON_LIBRARY_PATH": None,
    }
    assert rank["variables"]["NEURON_RT_ROOT_COMM_ID"] is None


def test_the_whole_job_is_announced_before_its_groups_exist(rank: dict[str, Any]) -> None:
    details = {event["event"]: event for event in rank["events"]}
    assert details["device count"]["count"] == 2
    assert details["same node"]["ranks_per_node"] == 1


def test_the_worker_builds_on_vllm_neurons_and_leaves_a_gelu_that_can_be_traced(rank: dict[str, Any]) -> None:
    assert rank["worker_bases"][:3] == ["NeuronDiffusionWorker", "DiffusionWorker", "NeuronWorker"]
    assert rank["device"] == "neuron:0"
    assert rank["gelu"]


def test_the_platform_builds_on_vllm_neurons_and_knows_the_device(rank: dict[str, Any]) -> None:
    bases = rank["platform_bases"]
    assert bases.index("OmniPlatform") < bases.index("NeuronPlatform") < bases.index("NeuronBasePlatform")
    assert rank["platform"] == {"device_count": 2, "float64": False}
    assert rank["backend"] == "neuron_native"


@pytest.fixture
def hardware(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setattr(core_setup, "detect_mode", lambda: Mode(ModeKind.HARDWARE, "a test says so."))
    monkeypatch.delenv(CORES, raising=False)
    monkeypatch.delenv("NEURON_VISIBLE_DEVICES", raising=False)
    return monkeypatch


def test_in_cpu_mode_nothing_is_touched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEURON_RT_ROOT_COMM_ID", "host:1")
    before = dict(os.environ)
    prepare_core(world_size=2, local_rank=1)
    assert dict(os.environ) == before


def test_a_core_chosen_in_the_parent_is_refused(hardware: pytest.MonkeyPatch) -> None:
    hardware.setenv(CORES, "3")
    with pytest.raises(SetupError, match=rf"{CORES} is set in the parent.*NEURON_VISIBLE_DEVICES"):
        prepare_core(world_size=1, local_rank=0)


def test_fewer_cores_than_ranks_are_refused(hardware: pytest.MonkeyPatch) -> None:
    hardware.setenv("NEURON_VISIBLE_DEVICES", "0,1")
    with pytest.raises(SetupError, match="lists 2 cores, but the job has 4 ranks"):
        prepare_core(world_size=4, local_rank=0)
    assert CORES not in os.environ


def test_the_sizes_are_those_of_the_whole_world() -> None:
    parallel = SimpleNamespace(data_parallel_size=2, world_size=1)
    worker = SimpleNamespace(od_config=SimpleNamespace(num_gpus=8))
    announce_sizes(worker, SimpleNamespace(parallel_config=parallel))
    assert parallel.world_size == 4
    assert worker.parallel_config is parallel
