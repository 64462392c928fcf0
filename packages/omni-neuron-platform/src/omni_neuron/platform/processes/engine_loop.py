"""The engine's own thread, which schedules requests: when it dies, the requests hear of it."""

from __future__ import annotations

from typing import Any

from vllm.logger import init_logger
from vllm_omni.diffusion.data import DiffusionOutput
from vllm_omni.diffusion.diffusion_engine import DiffusionEngine

logger = init_logger(__name__)


def install_loop_guard() -> None:
    """Put the guard around the loop of every engine that starts from now on."""
    stock = DiffusionEngine._busy_loop
    if not hasattr(stock, "guarded"):
        DiffusionEngine._busy_loop = guarded_loop(stock)


def guarded_loop(stock: Any) -> Any:
    """The loop, after whose death every waiting request fails and no further one is accepted."""

    def loop(engine: Any) -> None:
        try:
            stock(engine)
        except Exception as error:
            logger.exception("The engine's scheduling thread died.")
            engine._closed = True
            reason = f"the engine's scheduling thread died ({error!r}); start a new engine."
            for stream in list(engine._out_streams.values()):
                engine._put_queue_output(stream, DiffusionOutput(error=reason))

    loop.guarded = True  # type: ignore[attr-defined]
    return loop
