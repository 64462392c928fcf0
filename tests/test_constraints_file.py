"""constraints.txt holds what the workspace resolves to, and nothing of where it came from."""

import re

from constraints_file import TARGET, constraints
from packages_of_workspace import PROJECTS

PIN = re.compile(r"[a-z0-9][a-z0-9._-]*==[0-9][0-9a-z.!+]*( ; [a-z0-9_'<>=!.() ]+)?", re.IGNORECASE)
LINES = [line for line in TARGET.read_text().splitlines() if not line.startswith("#")]


def test_the_file_is_current():
    assert TARGET.read_text() == constraints(), "run nox -s constraints"


def test_every_line_is_one_exact_pin_without_a_host():
    assert [line for line in LINES if not PIN.fullmatch(line)] == []


def test_it_holds_the_engine_and_none_of_ours():
    names = {line.partition("==")[0] for line in LINES}
    assert {"torch", "torchvision", "vllm", "vllm-omni", "diffusers", "transformers"} <= names
    assert not names & {*PROJECTS, "omni-neuron-workspace", "pytest", "nox"}


def test_no_placeholder_of_a_neuron_wheel_is_pinned():
    names = {line.partition("==")[0] for line in LINES}
    assert not names & {"neuronx-cc", "nki", "vllm-neuron", "libtorch-neuronx-lite", "torch-neuronx"}
