"""LoRA is not served yet; a request that asks for it hears so."""

from __future__ import annotations

from typing import Any

from omni_neuron.runtime.errors import InputError


class NoLoRAManager:
    """Stands where vLLM-Omni's LoRA manager would, and refuses every adapter."""

    def set_active_adapter(self, lora_request: Any, lora_scale: float = 1.0) -> None:
        """Accept a request without an adapter.

        Raises:
            InputError: the request brings one.
        """
        if lora_request is not None:
            self._refuse(getattr(lora_request, "lora_name", lora_request))

    def add_adapter(self, lora_request: Any) -> bool:
        self._refuse(getattr(lora_request, "lora_name", lora_request))
        return False

    def remove_adapter(self, adapter_id: int) -> bool:
        self._refuse(adapter_id)
        return False

    def pin_adapter(self, adapter_id: int) -> bool:
        self._refuse(adapter_id)
        return False

    def list_adapters(self) -> list[int]:
        return []

    @staticmethod
    def _refuse(adapter: Any) -> None:
        raise InputError(
            f"lora_request {adapter!r} cannot be served: omni-neuron has no LoRA support yet; "
            "merge the adapter into the checkpoint, or send the request without it."
        )
