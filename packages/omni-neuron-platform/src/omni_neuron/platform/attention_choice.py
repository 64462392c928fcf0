"""Which attention backends can run on Neuron.

Light, because the platform answers before the engine is built.
"""

from __future__ import annotations

from omni_neuron.runtime.errors import InputError

MAX_HEAD_SIZE = 128  # the partition dimension of the tensor engine
HEAD_SIZE_UNKNOWN = -1  # what vLLM-Omni passes when it only probes a capability

DEFAULT = "TORCH_SDPA"
# vLLM-Omni's enumeration of backends is closed, so ours answer to names of it.
PATHS = {
    "TORCH_SDPA": "omni_neuron.platform.attention_backends.NeuronSDPABackend",
    "FLASH_ATTN": "omni_neuron.platform.attention_backends.NeuronFlashBackend",
}


def backend_path(selected: str | None, head_size: int) -> str:
    """Dotted path of the backend that serves `selected`, or of the default when it is None.

    Raises:
        InputError: `selected` names a backend of other hardware, or `head_size` does not fit the device.
    """
    name = (selected or DEFAULT).upper()
    if name not in PATHS:
        raise InputError(
            f"attention backend {selected!r} cannot run on Neuron: only {' and '.join(PATHS)} can; "
            "select one of them, or leave the backend out."
        )
    if head_size != HEAD_SIZE_UNKNOWN and not 1 <= head_size <= MAX_HEAD_SIZE:
        raise InputError(
            f"head_size {head_size} cannot run on Neuron: attention needs 1 to {MAX_HEAD_SIZE}, "
            "the partition dimension of the tensor engine; use a model with smaller heads."
        )
    return PATHS[name]
