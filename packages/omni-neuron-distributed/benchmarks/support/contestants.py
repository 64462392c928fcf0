"""Three ways to fill one rank's parameters; each starts from a model on the meta device."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from safetensors.torch import load_file
from torch import nn

from omni_neuron.distributed.groups import ParallelGroup
from omni_neuron.distributed.loading.sharded_loader import load_sharded

if TYPE_CHECKING:
    from support.synthetic import Model

Load = Callable[["Model", Path, list[Path], ParallelGroup], None]


def ours(model: Model, folder: Path, files: list[Path], group: ParallelGroup) -> None:
    load_sharded(model, folder, key_map=model.key_map())


def load_file_and_slice(model: Model, folder: Path, files: list[Path], group: ParallelGroup) -> None:
    """safetensors' own function, file by file, and a slice of every tensor."""
    copy_shards(model, group, (item for file in files for item in load_file(file).items()))


def vllm_omni(model: Model, folder: Path, files: list[Path], group: ParallelGroup) -> None:
    """The iterator of vLLM-Omni's diffusers loader at its defaults: whole files in four threads."""
    from vllm.model_executor.model_loader.weight_utils import multi_thread_safetensors_weights_iterator

    iterator = multi_thread_safetensors_weights_iterator([str(file) for file in files], False, max_workers=4)
    copy_shards(model, group, iterator)


def copy_shards(model: Model, group: ParallelGroup, tensors: Iterable[tuple[str, torch.Tensor]]) -> None:
    """Empty parameters first, then each rank's part of each whole tensor, as vLLM's weight loaders do."""
    model.to_empty(device="cpu")
    parameters = dict(model.named_parameters())
    targets: dict[str, torch.Tensor] = dict(parameters)
    for name, keys in model.key_map().items():
        targets |= zip(keys, parameters[name].data.chunk(3), strict=True)
    for key, whole in tensors:
        target = targets[key]
        if isinstance(target, nn.Parameter):
            target = target.data
        for dim, size in enumerate(target.shape):
            if size != whole.shape[dim]:
                whole = whole.narrow(dim, group.rank_in_group * size, size)
        target.copy_(whole)


def contestants() -> dict[str, Load]:
    """Those whose packages are installed."""
    found: dict[str, Load] = {"ours": ours, "load_file": load_file_and_slice}
    if find_spec("vllm") and find_spec("vllm_omni"):
        import vllm.model_executor.model_loader.weight_utils  # noqa: F401 (before the clock starts)

        found["vllm-omni"] = vllm_omni
    return found
