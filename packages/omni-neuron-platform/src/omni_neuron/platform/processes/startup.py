"""How a worker that fails during start-up tells its reason to the process that started it.

vLLM-Omni's workers report only success; a failed one just closes its pipe. Here it leaves the reason in a
folder that the executor made before the start and named in the configuration.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from omni_neuron.runtime.errors import InputError

FOLDER_KEY = "omni_neuron_startup_folder"


@contextmanager
def reported_failure(od_config: Any, rank: int) -> Iterator[None]:
    """Write an exception of the body where the executor looks for it, and let it pass."""
    try:
        yield
    except Exception as error:
        folder = (od_config.additional_config or {}).get(FOLDER_KEY)
        if folder is not None:
            record = {
                "bad_input": isinstance(error, InputError),
                "reason": f"{error}" or type(error).__name__,
            }
            # Whole or not at all: the executor may end this process at any time, and then reads the folder.
            part = Path(folder, f"{rank}.part")
            with suppress(OSError):  # the executor is gone, and the folder with it
                part.write_text(json.dumps(record))
                part.replace(part.with_suffix(".json"))
        raise


def startup_failure(folder: Path) -> Exception | None:
    """The failure that a worker left in `folder`, as `InputError` when the input was at fault.

    Ranks that fail because a peer did leave a reason too; a reason that blames the input goes first.
    """
    records = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
    records.sort(key=lambda record: not record["bad_input"])
    if not records:
        return None
    first = records[0]
    return InputError(first["reason"]) if first["bad_input"] else RuntimeError(first["reason"])
