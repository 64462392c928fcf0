import importlib

import pytest

from omni_neuron.platform.attention_choice import HEAD_SIZE_UNKNOWN, MAX_HEAD_SIZE, PATHS, backend_path
from omni_neuron.runtime.errors import InputError


@pytest.mark.parametrize("name", [*PATHS, *(name.lower() for name in PATHS)])
def test_a_name_gives_a_class_that_can_be_imported(name: str) -> None:
    module, _, attribute = backend_path(name, 128).rpartition(".")
    backend = getattr(importlib.import_module(module), attribute)
    assert backend.supports_head_size(128)
    assert not backend.supports_head_size(MAX_HEAD_SIZE + 1)


def test_the_default_is_sdpa_also_when_the_head_size_is_unknown() -> None:
    assert backend_path(None, HEAD_SIZE_UNKNOWN) == backend_path("TORCH_SDPA", 64)


@pytest.mark.parametrize("name", ["SAGE_ATTN", "CUDNN_ATTN", "nonsense"])
def test_a_backend_of_other_hardware_is_refused_by_name(name: str) -> None:
    with pytest.raises(InputError, match=f"{name}.*TORCH_SDPA"):
        backend_path(name, 128)


@pytest.mark.parametrize("head_size", [0, MAX_HEAD_SIZE + 1, 256])
def test_a_head_that_does_not_fit_the_tensor_engine_is_refused(head_size: int) -> None:
    with pytest.raises(InputError, match=f"head_size {head_size}"):
        backend_path(None, head_size)
