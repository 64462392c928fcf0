"""A world of one rank in this process, and pipelines in it."""

import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

MakeWorker = Callable[..., Any]


@pytest.fixture(scope="module")
def make_worker() -> Iterator[MakeWorker]:
    """Makes the worker of a checkpoint, the tiny one in fp32 by default; the next one ends the last one."""
    from vllm_omni.diffusion.data import OmniDiffusionConfig

    from omni_neuron.platform.plugin import register_neuron_pipelines
    from omni_neuron.platform.worker import NeuronDiffusionWorker
    from omni_neuron.wan22.checkpoint.tiny import tiny_checkpoint

    register_neuron_pipelines()
    workers: list[Any] = []

    def close() -> None:
        while workers:
            workers.pop().shutdown()

    def make(*, skip_load_model: bool = False, **fields: Any) -> Any:
        close()
        fields = {"model": str(tiny_checkpoint()), "dtype": torch.float32, **fields}
        config = OmniDiffusionConfig(model_class_name="WanPipeline", **fields)
        workers.append(NeuronDiffusionWorker(0, 0, config, skip_load_model))
        return workers[-1]

    yield make
    close()
    for stream in (sys.stdout, sys.stderr):
        vars(stream).pop("write", None)  # the worker's prefix


@pytest.fixture
def pipeline(make_worker: MakeWorker) -> Any:
    """The pipeline of the tiny checkpoint."""
    return make_worker().model_runner.pipeline
