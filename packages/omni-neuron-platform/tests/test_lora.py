from collections.abc import Callable
from types import SimpleNamespace

import pytest

from omni_neuron.platform.lora import NoLoRAManager
from omni_neuron.runtime.errors import InputError


def test_a_request_without_an_adapter_passes() -> None:
    manager = NoLoRAManager()
    manager.set_active_adapter(None, 1.0)
    assert manager.list_adapters() == []


@pytest.mark.parametrize(
    "call",
    [
        lambda manager: manager.set_active_adapter(SimpleNamespace(lora_name="style"), 1.0),
        lambda manager: manager.add_adapter(SimpleNamespace(lora_name="style")),
        lambda manager: manager.remove_adapter("style"),
        lambda manager: manager.pin_adapter("style"),
    ],
)
def test_an_adapter_is_refused_by_name(call: Callable[[NoLoRAManager], object]) -> None:
    with pytest.raises(InputError, match=r"style.*no LoRA"):
        call(NoLoRAManager())
