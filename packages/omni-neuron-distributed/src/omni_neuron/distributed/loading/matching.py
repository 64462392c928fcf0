"""Which checkpoint key fills which parameter, and everything that does not fit, told at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from torch import nn

from omni_neuron.distributed.errors import CheckpointError
from omni_neuron.distributed.loading.checkpoint_folder import Checkpoint
from omni_neuron.distributed.loading.placement import Shape
from omni_neuron.distributed.loading.stored_tensor import DTYPES, StoredTensor
from omni_neuron.distributed.loading.weight_loaders import WeightLoader, get_weight_loader
from omni_neuron.runtime.errors import InputError


def wanted_keys(
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


def match_keys(
    model: str,
    checkpoint: Checkpoint,
    parameters: Mapping[str, nn.Parameter],
    wanted: Mapping[str, tuple[str, ...]],
    aliases: Mapping[str, Sequence[str]],
    ignore: Sequence[str],
) -> dict[str, list[StoredTensor]]:
    """The stored tensors of every parameter, in its loader's order.

    Raises:
        CheckpointError: tensors are missing, extra or mis-shaped; all are listed.
        InputError: ``wanted`` or ``aliases`` do not fit the model.
    """
    unknown = sorted(set(aliases) - {key for keys in wanted.values() for key in keys})
    if unknown:
        raise InputError(f"aliases name {', '.join(unknown)}, which must be checkpoint keys of a parameter.")
    findings = _Findings()
    available = checkpoint.tensors
    used: set[str] = set()
    reader: dict[str, str] = {}
    matched: dict[str, list[StoredTensor]] = {name: [] for name in wanted}
    for name, keys in wanted.items():
        expected = _expected(name, parameters[name], get_weight_loader(parameters[name]), keys)
        for key, shape in zip(keys, expected, strict=True):
            candidates = (key, *aliases.get(key, ()))
            present = [candidate for candidate in candidates if candidate in available]
            used.update(present)
            if not present:
                findings.missing.append(" or ".join(candidates))
                continue
            first = present[0]
            if first in reader:
                raise InputError(
                    f"aliases use the checkpoint key {first} for {reader[first]} and for {name}: "
                    "each key must fill one parameter once."
                )
            reader[first] = name
            matched[name].append(available[first])
            problems = (_misfit(available[candidate], shape, parameters[name]) for candidate in present)
            findings.misfit += filter(None, problems)
    findings.extra = [key for key in available if key not in used and not key.startswith(tuple(ignore))]
    findings.raise_if_any(model, checkpoint.folder)
    return matched


def _expected(name: str, parameter: nn.Parameter, loader: WeightLoader, keys: Sequence[str]) -> list[Shape]:
    expected = loader.expected_shapes(parameter.shape)
    if len(expected) != len(keys):
        raise InputError(
            f"key_map gives {name} {len(keys)} checkpoint keys ({', '.join(keys)}), "
            f"but its loader must have {len(expected)}."
        )
    return expected


def _misfit(tensor: StoredTensor, shape: Shape, parameter: nn.Parameter) -> str | None:
    if tensor.shape != shape:
        return f"{tensor.key} is {list(tensor.shape)} instead of {list(shape)}"
    stored = DTYPES.get(tensor.kind)
    # An eight-bit float means nothing without its scale, so nothing casts it.
    castable = stored is not None and (stored.itemsize > 1 or not stored.is_floating_point)
    alike = stored is not None and stored.is_floating_point == parameter.is_floating_point()
    if stored != parameter.dtype and not (alike and castable):
        return f"{tensor.key} holds {tensor.kind} for a parameter of {parameter.dtype}"
    return None
