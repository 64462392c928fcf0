"""What the engine's log says about devices of other makers, and nobody here can act on."""

from __future__ import annotations

import logging

# By logger, the beginnings of messages before their arguments are put in.
SAYINGS: dict[str, tuple[str, ...]] = {
    "torch.utils.cpp_extension": ("No CUDA runtime is found",),
    "vllm.config.vllm": (
        "Inductor compilation was disabled by user settings",
        "Model Runner V2 requires Triton",
    ),
    # Our transformers cut and join the sequence themselves.
    "vllm_omni.diffusion.registry": ("Sequence parallelism is enabled (sp_size=",),
    "vllm_omni.worker.gpu_memory_utils": ("NVML init failed",),
}


class _Silence(logging.Filter):
    """Drops records that begin with one of the sayings; everything else passes."""

    def __init__(self, sayings: tuple[str, ...]) -> None:
        super().__init__()
        self._sayings = sayings

    def filter(self, record: logging.LogRecord) -> bool:
        return not str(record.msg).startswith(self._sayings)


def silence_other_devices() -> None:
    """Leave those sayings out of this process's log, whether or not their modules are imported yet."""
    for name, sayings in SAYINGS.items():
        logger = logging.getLogger(name)
        if not any(isinstance(each, _Silence) for each in logger.filters):
            logger.addFilter(_Silence(sayings))
