"""What the wrapper makes of the engine's failures and frames."""

import numpy as np
import pytest

from omni_neuron.runtime.errors import InputError, SetupError
from omni_neuron.wan22.generation.engine import EngineError, _to_uint8, told


def wrapped(reason):
    """The way the engine wraps what happens while it starts."""
    try:
        try:
            raise reason
        except Exception as error:
            raise RuntimeError(f"Orchestrator initialization failed: {error}") from error
    except RuntimeError as error:
        return error


def test_bad_input_is_found_under_the_engines_wrapping():
    failure = told(wrapped(wrapped(InputError("the checkpoint lacks a tensor."))))
    assert type(failure) is InputError
    assert str(failure) == "the checkpoint lacks a tensor."


def test_the_engines_word_for_a_bad_request_is_bad_input():
    from vllm_omni.errors import OmniClientError

    failure = told(OmniClientError("height is 63."))
    assert type(failure) is InputError
    assert str(failure) == "height is 63."


@pytest.mark.parametrize(
    "reason", [RuntimeError("a worker died"), ValueError("a bug"), MemoryError("too large"), OSError("gone")]
)
def test_another_failure_is_the_engines(reason):
    failure = told(wrapped(reason))
    assert type(failure) is EngineError
    assert str(failure) == str(reason)
    assert not isinstance(failure, ValueError)
    assert isinstance(failure, SetupError)


def test_a_failure_without_a_word_is_named():
    assert str(told(EOFError())) == "EOFError"


@pytest.mark.parametrize("shape", [(3, 4, 6, 3), (1, 3, 4, 6, 3)])
def test_frames_become_bytes(shape):
    frames = np.linspace(0.0, 1.0, num=int(np.prod(shape)), dtype=np.float32).reshape(shape)
    as_bytes = _to_uint8([frames])
    assert as_bytes.dtype == np.uint8
    assert as_bytes.shape == (3, 4, 6, 3)
    assert np.abs(as_bytes / 255.0 - frames.reshape(as_bytes.shape)).max() <= 0.5 / 255 + 1e-6
    assert _to_uint8(as_bytes) is as_bytes
