import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from omni_neuron.kernels.gate import can_run_kernel

ON_CPU = torch.zeros(1)
# The meta device stands for any device that is not the CPU; nothing is launched here.
ON_DEVICE = torch.zeros(1, device="meta")


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("VLLM_NEURON_DISABLE_NKI_KERNELS", "VLLM_NEURON_CPU_MODE", "NKI_SIMULATOR"):
        monkeypatch.delenv(name, raising=False)


def test_outside_cpu_mode_the_device_decides() -> None:
    assert can_run_kernel(ON_DEVICE)
    assert not can_run_kernel(ON_CPU)


def test_the_interpreter_alone_does_not_move_a_cpu_tensor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NKI_SIMULATOR", "1")
    assert not can_run_kernel(ON_CPU)


@pytest.mark.parametrize("simulator", ["0", "1"])
def test_cpu_mode_needs_the_interpreter(monkeypatch: pytest.MonkeyPatch, simulator: str) -> None:
    monkeypatch.setenv("VLLM_NEURON_CPU_MODE", "1")
    monkeypatch.setenv("NKI_SIMULATOR", simulator)
    assert can_run_kernel(ON_CPU) is (simulator == "1")


def test_disabled_kernels_never_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_NEURON_DISABLE_NKI_KERNELS", "1")
    assert not can_run_kernel(ON_DEVICE)
    monkeypatch.setenv("VLLM_NEURON_CPU_MODE", "1")
    monkeypatch.setenv("NKI_SIMULATOR", "1")
    assert not can_run_kernel(ON_CPU)


def test_a_fake_tensor_has_nothing_to_launch_on(monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeTensorMode():
        fake = torch.zeros(1)
        fake_on_device = torch.zeros(1, device="cuda")
    assert not can_run_kernel(fake_on_device)
    monkeypatch.setenv("VLLM_NEURON_CPU_MODE", "1")
    monkeypatch.setenv("NKI_SIMULATOR", "1")
    assert can_run_kernel(ON_CPU)
    assert not can_run_kernel(fake)


def test_the_gate_traces_into_one_graph() -> None:
    def choose(x: torch.Tensor) -> torch.Tensor:
        return x + 1 if can_run_kernel(x) else x - 1

    compiled = torch.compile(choose, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(ON_CPU), ON_CPU - 1)
