"""Where a tensor lies in a safetensors file, and how its bytes get into memory.

Files are read with ``pread`` instead of through a mapping: a file that shrinks or fails under a mapping kills
the process, and here it is an error that names the file. The reads go straight to where they belong.
"""

from __future__ import annotations

import ctypes
import json
import math
import os
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open

from omni_neuron.distributed.errors import CheckpointError
from omni_neuron.distributed.loading.placement import Shape

DTYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "F8_E4M3": torch.float8_e4m3fn,
    "F8_E5M2": torch.float8_e5m2,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}


@dataclass(frozen=True)
class StoredTensor:
    """A tensor in a file, row-major from byte ``offset`` on; ``kind`` is safetensors' name of the dtype."""

    file: Path
    key: str
    kind: str
    shape: Shape
    offset: int

    @property
    def dtype(self) -> torch.dtype:
        """The dtype; KeyError for a kind that this package does not read."""
        return DTYPES[self.kind]

    @property
    def size(self) -> int:
        """Bytes in the file."""
        return math.prod(self.shape) * self.dtype.itemsize


def read_header(file: Path) -> dict[str, StoredTensor]:
    """Every tensor of a safetensors file by key.

    Raises:
        CheckpointError: the file is truncated or no safetensors file.
    """
    try:
        with safe_open(str(file), framework="pt"):
            pass  # the library has checked the header and the file's length against it
        with open(file, "rb") as stream:
            length = int.from_bytes(stream.read(8), "little")
            header = json.loads(stream.read(length))
    except (SafetensorError, OSError, ValueError) as error:
        raise CheckpointError(
            f"Checkpoint file {file} is truncated or not readable as safetensors ({error}): "
            "fetch the checkpoint again."
        ) from error
    header.pop("__metadata__", None)
    return {
        key: StoredTensor(
            file, key, entry["dtype"], tuple(entry["shape"]), 8 + length + entry["data_offsets"][0]
        )
        for key, entry in header.items()
    }


def read_into(descriptor: int, tensor: StoredTensor, offset: int, memory: torch.Tensor) -> None:
    """Fill contiguous host ``memory`` from byte ``offset`` of the open file.

    Raises:
        CheckpointError: the file ends too early or cannot be read.
    """
    size = memory.numel() * memory.element_size()
    view = memoryview((ctypes.c_char * size).from_address(memory.data_ptr())).cast("B")
    done = 0
    while done < size:
        try:
            got = os.preadv(descriptor, [view[done:]], offset + done)
        except OSError as error:
            raise CheckpointError(
                f"Checkpoint file {tensor.file} cannot be read at byte {offset + done}, in {tensor.key} "
                f"({error.strerror}): check the disk, then fetch the checkpoint again."
            ) from error
        if not got:
            raise CheckpointError(
                f"Checkpoint file {tensor.file} ends at byte {offset + done}, inside {tensor.key}: "
                "fetch the checkpoint again."
            )
        done += got
