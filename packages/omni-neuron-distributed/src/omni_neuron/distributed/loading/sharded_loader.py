"""Fill a model from a checkpoint folder, each rank reading only the bytes it keeps.

Everything is checked against the files' headers before the first parameter changes, so that a checkpoint
that does not fit is reported whole and leaves the model as it was.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from torch import nn

from omni_neuron.distributed.errors import ShardingError
from omni_neuron.distributed.loading.checkpoint_folder import read_checkpoint
from omni_neuron.distributed.loading.matching import match_keys, wanted_keys
from omni_neuron.distributed.loading.page_cache import Prefetch
from omni_neuron.distributed.loading.pipeline import Progress, run_pipeline
from omni_neuron.distributed.loading.placement import Placement
from omni_neuron.distributed.loading.read_plan import ParameterPlan, plan_reads
from omni_neuron.distributed.loading.target import Target
from omni_neuron.distributed.loading.weight_loaders import get_weight_loader

STALL_S = 600.0


def load_sharded(
    model: nn.Module,
    folder: str | Path,
    *,
    key_map: Mapping[str, Sequence[str]] | None = None,
    aliases: Mapping[str, Sequence[str]] | None = None,
    ignore: Sequence[str] = (),
    dtype_from_param: bool = True,
    device: torch.device | str = "cpu",
    prefetch: Prefetch | None = None,
    progress: Progress | None = None,
    stall_s: float = STALL_S,
) -> set[str]:
    """Fill every parameter of ``model`` from one component folder; buffers stay as they are.

    Args:
        model: parameters may be allocated (filled in place) or on the meta device (materialised).
        folder: a diffusers or transformers component folder with safetensors files.
        key_map: parameter name to its checkpoint keys in the order its loader expects; a parameter
            without an entry loads from the key of its own name.
        aliases: checkpoint key to alternative keys, of which one must exist; several are a tied
            duplicate, and the first is read.
        ignore: prefixes of checkpoint keys that may stay unused.
        dtype_from_param: cast to each parameter's dtype; else parameters take the checkpoint's dtype.
        device: where meta parameters are materialised.
        prefetch: this rank's part of filling the page cache; None shares the files among all ranks of the
            default process group.
        progress: called in this thread with the bytes of this rank that arrived and their total.
        stall_s: seconds without any movement after which loading is given up.

    Returns:
        The names of the loaded parameters: all of ``model.named_parameters()``.

    Raises:
        CheckpointError: a file is unreadable, or tensors are missing, extra or mis-shaped; all are listed.
            When a file fails while it is read, parameters that were on the meta device still are.
        InputError: ``key_map`` or ``aliases`` do not fit the model.
        ShardingError: a loader does not fit its parameter.
        TimeoutError: nothing moved for ``stall_s`` seconds.
    """
    parameters = dict(model.named_parameters())
    plans = _plan(model, parameters, folder, key_map, aliases, ignore)
    targets = {}
    for plan in plans:
        parameter = parameters[plan.name]
        dtype = parameter.dtype if dtype_from_param else plan.dtype
        targets[plan.name] = Target(parameter, plan, dtype, torch.device(device))
    prefetch = prefetch or Prefetch.of_this_process()
    run_pipeline(f"Loading of {folder}", plans, targets, prefetch, progress, stall_s)
    results = {target.parameter: target.result() for target in targets.values()}
    _replace(model, {old: new for old, new in results.items() if old is not new})
    return set(parameters)


def check_sharded(
    model: nn.Module,
    folder: str | Path,
    *,
    key_map: Mapping[str, Sequence[str]] | None = None,
    aliases: Mapping[str, Sequence[str]] | None = None,
    ignore: Sequence[str] = (),
) -> None:
    """Make the checks of :func:`load_sharded`, from the files' headers alone, and load nothing.

    Raises:
        CheckpointError: a file is unreadable, or tensors are missing, extra or mis-shaped; all are listed.
        InputError: ``key_map`` or ``aliases`` do not fit the model.
        ShardingError: a loader does not fit its parameter.
    """
    _plan(model, dict(model.named_parameters()), folder, key_map, aliases, ignore)


def _plan(
    model: nn.Module,
    parameters: Mapping[str, nn.Parameter],
    folder: str | Path,
    key_map: Mapping[str, Sequence[str]] | None,
    aliases: Mapping[str, Sequence[str]] | None,
    ignore: Sequence[str],
) -> list[ParameterPlan]:
    """What to read for every parameter, after all checks."""
    wanted = wanted_keys(parameters, key_map or {})
    checkpoint = read_checkpoint(Path(folder))
    matched = match_keys(type(model).__name__, checkpoint, parameters, wanted, aliases or {}, ignore)
    placements = {
        name: _placement(name, parameters[name], [tensor.shape for tensor in tensors])
        for name, tensors in matched.items()
    }
    return plan_reads(matched, placements)


def _placement(name: str, parameter: nn.Parameter, shapes: Sequence[tuple[int, ...]]) -> Placement:
    placement = get_weight_loader(parameter).placement(shapes)
    if placement.shape != tuple(parameter.shape):
        raise ShardingError(
            f"The loader of {name} gave {list(placement.shape)}, which must be the parameter's "
            f"{list(parameter.shape)}: attach the loader that fits the parameter."
        )
    placement.require_complete(name)
    return placement


def _replace(model: nn.Module, materialised: Mapping[nn.Parameter, nn.Parameter]) -> None:
    """Put the new parameters in every place of the old ones, tied places included."""
    for module in model.modules():
        for name, parameter in module._parameters.items():
            if parameter is not None and parameter in materialised:
                module._parameters[name] = materialised[parameter]
