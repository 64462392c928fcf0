"""The safetensors files of one diffusers or transformers component folder."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from omni_neuron.distributed.errors import CheckpointError
from omni_neuron.distributed.loading.stored_tensor import StoredTensor, read_header

FILE_NAMES = ("diffusion_pytorch_model.safetensors", "model.safetensors")


@dataclass(frozen=True)
class Checkpoint:
    """What a folder's files hold; nothing is read yet and no file is open."""

    folder: Path
    tensors: Mapping[str, StoredTensor]


def read_checkpoint(folder: Path) -> Checkpoint:
    """Read the headers of a component folder's files, through its index file where it has one.

    Raises:
        CheckpointError: no checkpoint, an unreadable or truncated file, an absent shard, or an index that
            disagrees with its shards.
    """
    files, weight_map = _files(folder)
    tensors: dict[str, StoredTensor] = {}
    stray: list[str] = []
    for file in files:
        for key, tensor in read_header(file).items():
            if weight_map is not None and weight_map.get(key) != file.name:
                stray.append(f"{key} in {file.name}")
                continue
            tensors[key] = tensor
    absent = [f"{key} in {name}" for key, name in (weight_map or {}).items() if key not in tensors]
    if stray or absent:
        raise CheckpointError(
            f"The index of checkpoint {folder} must match its files, but "
            f"{_list('it names absent tensors', absent)}{'; ' if stray and absent else ''}"
            f"{_list('it does not name', stray)}: fetch the checkpoint again.",
            missing=absent,
            extra=stray,
        )
    return Checkpoint(folder, tensors)


def _list(title: str, items: list[str]) -> str:
    return f"{title} {', '.join(sorted(items))}" if items else ""


def _files(folder: Path) -> tuple[list[Path], dict[str, str] | None]:
    """The files to open, and the index's map from key to file name where there is one."""
    for name in FILE_NAMES:
        index = folder / f"{name}.index.json"
        if index.is_file():
            weight_map = _read_index(index)
            files = [folder / shard for shard in sorted(set(weight_map.values()))]
            lacking = [file.name for file in files if not file.is_file()]
            if lacking:
                raise CheckpointError(
                    f"Checkpoint {folder} lacks {', '.join(lacking)}, which {index.name} names: "
                    "fetch the checkpoint again."
                )
            return files, weight_map
        if (folder / name).is_file():
            return [folder / name], None
    found = sorted(file.name for file in folder.glob("*")) if folder.is_dir() else []
    raise CheckpointError(
        f"Checkpoint folder {folder} must hold {' or '.join(FILE_NAMES)} or its .index.json, "
        f"but holds {', '.join(found) if found else 'nothing'}: pass the folder of one component."
    )


def _read_index(index: Path) -> dict[str, str]:
    try:
        weight_map = json.loads(index.read_text(encoding="utf-8"))["weight_map"]
        valid = all(isinstance(key, str) and _is_file_name(name) for key, name in weight_map.items())
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CheckpointError(
            f"Checkpoint index {index} must be JSON with a weight_map, but {error!r}: "
            "fetch the checkpoint again."
        ) from error
    if not valid or not weight_map:
        raise CheckpointError(
            f"Checkpoint index {index} must map tensor names to file names of its own folder: "
            "fetch the checkpoint again."
        )
    return cast(dict[str, str], weight_map)


def _is_file_name(name: object) -> bool:
    """Whether a file of the index's own folder may be called so."""
    if not isinstance(name, str) or name in ("", ".."):
        return False
    return Path(name).name == name and len(name.encode()) < 256
