"""Fill a model from a checkpoint folder, each rank reading only the bytes it keeps.

Everything is checked against the files' headers before the first parameter changes, so that a checkpoint
that does not fit is reported whole and leaves the model as it was.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import nn

from omni_neuron.distributed.errors import CheckpointError, ShardingError
from omni_neuron.distributed.loading.checkpoint_folder import Checkpoint, open_checkpoint
from omni_neuron.distributed.loading.weight_loaders import WeightLoader, get_weight_loader
from omni_neuron.runtime.errors import InputError

_FLOATING = {"F64", "F32", "F16", "BF16"}


def load_sharded(
    model: nn.Module,
    folder: str | Path,
    *,
    key_map: Mapping[str, Sequence[str]] | None = None,
    aliases: Mapping[str, Sequence[str]] | None = None,
    ignore: Sequence[str] = (),
    dtype_from_param: bool = True,
    device: torch.device | str = "cpu",
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

    Returns:
        The names of the loaded parameters: all of ``model.named_parameters()``.

    Raises:
        CheckpointError: a file is unreadable, or tensors are missing, extra or mis-shaped; all are listed.
        InputError: ``key_map`` does not fit the model.
    """
    parameters = dict(model.named_parameters())
    wanted = _wanted(parameters, key_map or {})
    with open_checkpoint(Path(folder)) as checkpoint:
        keys = _match(type(model).__name__, checkpoint, parameters, wanted, aliases or {}, ignore)
        materialised: dict[nn.Parameter, nn.Parameter] = {}
        for name, parameter in parameters.items():
            value = get_weight_loader(parameter)([checkpoint.tensor(key) for key in keys[name]])
            if value.shape != parameter.shape:
                raise ShardingError(
                    f"The loader of {name} gave {list(value.shape)}, which must be the parameter's "
                    f"{list(parameter.shape)}: attach the loader that fits the parameter."
                )
            filled = _fill(parameter, value, dtype_from_param, torch.device(device))
            if filled is not parameter:
                materialised[parameter] = filled
    _replace(model, materialised)
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
        InputError: ``key_map`` does not fit the model.
    """
    parameters = dict(model.named_parameters())
    wanted = _wanted(parameters, key_map or {})
    with open_checkpoint(Path(folder)) as checkpoint:
        _match(type(model).__name__, checkpoint, parameters, wanted, aliases or {}, ignore)


def _wanted(
    parameters: Mapping[str, nn.Parameter], key_map: Mapping[str, Sequence[str]]
) -> dict[str, tuple[str, ...]]:
    """Checkpoint keys of every parameter."""
    unknown = sorted(set(key_map) - set(parameters))
    if unknown:
        raise InputError(f"key_map names {', '.join(unknown)}, which must be parameters of the model.")
    wanted = {name: tuple(key_map.get(name, (name,))) for name in parameters}
    owner: dict[str, str] = {}
    for name, keys in wanted.items():
        for key in keys:
            if key in owner:
                raise InputError(
                    f"key_map uses the checkpoint key {key} for {owner[key]} and for {name}: "
                    "each key must fill one parameter once."
                )
            owner[key] = name
    return wanted


@dataclass
class _Findings:
    missing: list[str] = field(default_factory=list)
    extra: list[str] = field(default_factory=list)
    misfit: list[str] = field(default_factory=list)

    def raise_if_any(self, model: str, folder: Path) -> None:
        parts = [
            f"{len(items)} {title} ({', '.join(sorted(items))})"
            for title, items in (
                ("missing", self.missing),
                ("extra", self.extra),
                ("mis-shaped", self.misfit),
            )
            if items
        ]
        if parts:
            raise CheckpointError(
                f"The tensors of checkpoint {folder} must be those of {model}, but there are "
                f"{' and '.join(parts)}: use a checkpoint that belongs to this configuration.",
                missing=sorted(self.missing),
                extra=sorted(self.extra),
                misfit=sorted(self.misfit),
            )


def _match(
    model: str,
    checkpoint: Checkpoint,
    parameters: Mapping[str, nn.Parameter],
    wanted: Mapping[str, tuple[str, ...]],
    aliases: Mapping[str, Sequence[str]],
    ignore: Sequence[str],
) -> dict[str, list[str]]:
    """The existing key for every wanted one, after shapes and completeness are checked."""
    findings = _Findings()
    available = checkpoint.keys
    used: set[str] = set()
    matched: dict[str, list[str]] = {name: [] for name in wanted}
    for name, keys in wanted.items():
        expected = _expected(name, parameters[name], get_weight_loader(parameters[name]), keys)
        for key, shape in zip(keys, expected, strict=True):
            candidates = (key, *aliases.get(key, ()))
            present = [candidate for candidate in candidates if candidate in available]
            used.update(present)
            if not present:
                findings.missing.append(" or ".join(candidates))
                continue
            matched[name].append(present[0])
            for candidate in present:
                problem = _misfit(checkpoint, candidate, shape, parameters[name])
                if problem:
                    findings.misfit.append(problem)
    findings.extra = [key for key in available - used if not key.startswith(tuple(ignore))]
    findings.raise_if_any(model, checkpoint.folder)
    return matched


def _expected(
    name: str, parameter: nn.Parameter, loader: WeightLoader, keys: Sequence[str]
) -> list[tuple[int, ...]]:
    expected = loader.expected_shapes(parameter.shape)
    if len(expected) != len(keys):
        raise InputError(
            f"key_map gives {name} {len(keys)} checkpoint keys ({', '.join(keys)}), "
            f"but its loader must have {len(expected)}."
        )
    return expected


def _misfit(checkpoint: Checkpoint, key: str, shape: tuple[int, ...], parameter: nn.Parameter) -> str | None:
    tensor = checkpoint.tensor(key)
    found = list(tensor.get_shape())
    if found != list(shape):
        return f"{key} is {found} instead of {list(shape)}"
    if parameter.is_floating_point() != (tensor.get_dtype() in _FLOATING):
        return f"{key} holds {tensor.get_dtype()} for a parameter of {parameter.dtype}"
    return None


def _fill(
    parameter: nn.Parameter, value: torch.Tensor, dtype_from_param: bool, device: torch.device
) -> nn.Parameter:
    """The parameter with its value: itself, or a new one in place of a meta parameter."""
    # Slices are views of the mapped file: they are copied, or the file would back the model.
    dtype = parameter.dtype if dtype_from_param else value.dtype
    target = device if parameter.is_meta else parameter.device
    if target.type != "cpu":
        value = value.to(dtype).contiguous()  # devices do not cast while they copy
    if not parameter.is_meta and parameter.dtype == dtype:
        parameter.data.copy_(value)
        return parameter
    data = torch.empty(value.shape, dtype=dtype, device=target).copy_(value)
    if not parameter.is_meta:
        parameter.data = data
        return parameter
    filled = nn.Parameter(data, requires_grad=parameter.requires_grad)
    filled.__dict__.update(parameter.__dict__)
    return filled


def _replace(model: nn.Module, materialised: Mapping[nn.Parameter, nn.Parameter]) -> None:
    """Put the new parameters in every place of the old ones, tied places included."""
    for module in model.modules():
        for name, parameter in module._parameters.items():
            if parameter is not None and parameter in materialised:
                module._parameters[name] = materialised[parameter]
