"""The entry points, each world in a process of its own because the engine asks only once."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from omni_neuron.platform import plugin
from omni_neuron.platform.plugin import (
    neuron_omni_platform_plugin,
    register_neuron_pipelines,
    vllm_platform_plugin,
)
from omni_neuron.runtime.diagnosis.packages import check_engine
from omni_neuron.runtime.errors import InputError, SetupError
from omni_neuron.runtime.mode import Mode, ModeKind

CPU_MODE = "VLLM_NEURON_CPU_MODE"
REQUEST_LIMIT = "VLLM_OMNI_DLO_DP_WAVE_TIMEOUT"

LIMIT = """
from vllm_omni.diffusion.executor import multiproc_executor
print("RESULT", multiproc_executor._DLO_DP_WAVE_TIMEOUT_S)
"""

INACTIVE = """
from vllm.platforms import current_platform
from vllm_omni.platforms import current_omni_platform
from vllm_omni.plugins import load_omni_general_plugins
load_omni_general_plugins()
from vllm_omni.diffusion.executor.multiproc_executor import MultiprocDiffusionExecutor
from vllm_omni.diffusion.registry import DiffusionModelRegistry
print("RESULT", type(current_platform).__name__, type(current_omni_platform).__name__,
      DiffusionModelRegistry._try_load_model_cls("WanPipeline").__module__,
      MultiprocDiffusionExecutor.__module__)
"""


def test_without_device_and_cpu_mode_the_engine_stays_as_it_was() -> None:
    environment = {name: value for name, value in os.environ.items() if name != CPU_MODE}
    environment["VLLM_LOGGING_LEVEL"] = "WARNING"
    done = subprocess.run(
        [sys.executable, "-c", INACTIVE],
        env=environment,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (result,) = (line for line in done.stdout.splitlines() if line.startswith("RESULT"))
    assert result.split()[1:] == [
        "UnspecifiedPlatform",
        "UnspecifiedOmniPlatform",
        "vllm_omni.diffusion.models.wan2_2.pipeline_wan2_2",
        "vllm_omni.diffusion.executor.multiproc_executor",
    ]
    assert "omni-neuron is installed but inactive" in done.stderr
    assert CPU_MODE in done.stderr


def test_in_cpu_mode_both_engines_get_our_platforms() -> None:
    assert neuron_omni_platform_plugin() == "omni_neuron.platform.platform.NeuronOmniPlatform"
    assert vllm_platform_plugin() == "omni_neuron.platform.vllm_platform.NeuronBasePlatform"


def test_inactive_neither_platform_is_offered(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(plugin, "detect_mode", lambda: Mode(ModeKind.INACTIVE, "a test says so."))
    assert neuron_omni_platform_plugin() is None
    assert vllm_platform_plugin() is None
    assert caplog.messages == ["omni-neuron is installed but inactive: a test says so."]


def test_on_a_device_the_native_route_is_chosen_where_nobody_chose(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugin, "detect_mode", lambda: Mode(ModeKind.HARDWARE, "a test says so."))
    for name, value in (("VLLM_NEURON_BACKEND", ""), ("NEURON_VISIBLE_DEVICES", "4-5")):
        monkeypatch.setenv(name, value)
    neuron_omni_platform_plugin()
    assert os.environ["VLLM_NEURON_BACKEND"] == "neuron_native"
    assert os.environ["NEURON_VISIBLE_DEVICES"] == "4,5"
    monkeypatch.setenv("VLLM_NEURON_BACKEND", "neuron")
    neuron_omni_platform_plugin()
    assert os.environ["VLLM_NEURON_BACKEND"] == "neuron"


@pytest.mark.parametrize(("chosen", "becomes"), [("", "1"), ("0", "0")])
def test_vllm_compiles_nothing_for_cuda_unless_the_user_wants_it(
    chosen: str, becomes: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HUMMING_DISABLE_PARALLEL_BUILD", chosen)
    vllm_platform_plugin()
    assert os.environ["HUMMING_DISABLE_PARALLEL_BUILD"] == becomes


@pytest.mark.parametrize(("chosen", "becomes"), [("", "86400"), ("30", "30")])
def test_a_request_may_compile_unless_the_user_sets_a_limit(
    chosen: str, becomes: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(REQUEST_LIMIT, chosen)
    neuron_omni_platform_plugin()
    assert os.environ[REQUEST_LIMIT] == becomes


def test_the_executor_reads_that_limit() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LIMIT],
        env={**os.environ, REQUEST_LIMIT: "", CPU_MODE: "1", "VLLM_LOGGING_LEVEL": "WARNING"},
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "RESULT 86400.0" in done.stdout.splitlines()


def test_inactive_the_environment_stays_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugin, "detect_mode", lambda: Mode(ModeKind.INACTIVE, "a test says so."))
    for name in ("HUMMING_DISABLE_PARALLEL_BUILD", REQUEST_LIMIT):
        monkeypatch.delenv(name, raising=False)
    vllm_platform_plugin()
    neuron_omni_platform_plugin()
    assert not {"HUMMING_DISABLE_PARALLEL_BUILD", REQUEST_LIMIT} & set(os.environ)


@pytest.mark.parametrize(
    ("vllm", "omni", "rule"),
    [
        ("0.29.0", "0.30.0", "the minor versions differ"),
        ("0.31.0", "0.31.0", "only 0.29 and 0.30 are supported"),
    ],
)
def test_versions_that_do_not_belong_together_are_refused_aloud(
    vllm: str, omni: str, rule: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, version in (("vllm", vllm), ("vllm_omni", omni)):
        info = tmp_path / f"{name}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    monkeypatch.setattr(plugin, "check_engine", lambda: check_engine([str(tmp_path)]))
    with pytest.raises(SetupError, match=rule):
        register_neuron_pipelines()


@pytest.mark.parametrize(
    ("name", "value"),
    [("NEURON_VISIBLE_DEVICES", "all"), (CPU_MODE, "true"), ("VLLM_NEURON_CPU_COMPILE", "1")],
)
def test_a_bad_variable_is_an_error_that_names_it(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(InputError, match=name):
        register_neuron_pipelines()


def test_registering_twice_changes_nothing() -> None:
    from vllm_omni.diffusion.registry import DiffusionModelRegistry

    register_neuron_pipelines()
    register_neuron_pipelines()
    found = DiffusionModelRegistry._try_load_model_cls("WanPipeline")
    assert found.__name__ == "NeuronWanPipeline"
