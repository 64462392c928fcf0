from types import SimpleNamespace
from typing import Any

from vllm_omni.diffusion.diffusion_engine import DiffusionEngine

from omni_neuron.platform.processes.engine_loop import guarded_loop, install_loop_guard


def _engine() -> Any:
    engine = SimpleNamespace(_closed=False, _out_streams={"a": [], "b": []})
    engine._put_queue_output = lambda stream, output: stream.append(output)
    return engine


def test_the_death_of_the_loop_reaches_every_request_that_waits() -> None:
    def dying(engine: Any) -> None:
        raise KeyError("scheduler")

    engine = _engine()
    guarded_loop(dying)(engine)
    for (output,) in engine._out_streams.values():
        assert "scheduling thread died (KeyError('scheduler'))" in output.error
    assert engine._closed  # no further request is accepted


def test_a_loop_that_ends_says_nothing() -> None:
    engine = _engine()
    guarded_loop(lambda engine: None)(engine)
    assert engine._out_streams == {"a": [], "b": []}
    assert not engine._closed


def test_the_guard_is_put_on_once() -> None:
    install_loop_guard()
    guarded = DiffusionEngine._busy_loop
    install_loop_guard()
    assert DiffusionEngine._busy_loop is guarded
    assert guarded.guarded
