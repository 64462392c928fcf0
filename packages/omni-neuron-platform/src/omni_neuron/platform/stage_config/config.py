"""What a stage file says, checked, in terms of our own keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from omni_neuron.runtime.errors import InputError

SAMPLING = (
    "height",
    "width",
    "num_frames",
    "num_inference_steps",
    "guidance_scale",
    "guidance_scale_2",
    "seed",
    "fps",
)


@dataclass(frozen=True)
class StageConfig:
    """The settings of the one diffusion stage.

    Attributes:
        values: by key of the table, only what the file or an override set.
        source: where they come from, for messages.
    """

    values: Mapping[str, Any] = field(default_factory=dict)
    source: str = "the command line"

    def get(self, name: str, default: Any = None) -> Any:
        """A setting, or `default` where nobody set it."""
        return self.values.get(name, default)

    @property
    def tensor_parallel_size(self) -> int:
        return int(self.get("tensor_parallel_size", 1))

    @property
    def ring_degree(self) -> int:
        """The degree of context parallelism."""
        return int(self.get("ring_degree", 1))

    @property
    def cfg_parallel_size(self) -> int:
        return int(self.get("cfg_parallel_size", 1))

    @property
    def world_size(self) -> int:
        """How many workers, one device each, the layout takes."""
        return self.tensor_parallel_size * self.ring_degree * self.cfg_parallel_size

    @property
    def devices(self) -> tuple[int, ...]:
        """The devices in rank order; the first ones where nobody chose."""
        return tuple(self.get("devices", range(self.world_size)))

    @property
    def request_defaults(self) -> dict[str, Any]:
        """What a request gets when it does not say otherwise, by the engine's sampling parameters."""
        return {name: self.values[name] for name in SAMPLING if name in self.values}


def written_devices(devices: tuple[int, ...]) -> str:
    """The list in the only form that every part of vLLM-Omni reads: numbers and commas."""
    return ",".join(map(str, devices))


def check_layout(config: StageConfig) -> None:
    """Refuse settings that contradict each other.

    Raises:
        InputError: names the keys, their values and the remedy.
    """
    layout = (
        f"tensor_parallel_size {config.tensor_parallel_size} x ring_degree {config.ring_degree} x "
        f"cfg_parallel_size {config.cfg_parallel_size}"
    )
    if len(config.devices) != config.world_size:
        raise InputError(
            f'devices of {config.source} are "{written_devices(config.devices)}", {len(config.devices)} '
            f"of them, but the layout {layout} takes {config.world_size}; list as many, or leave devices out."
        )
    if config.get("sequence_parallel_size", config.ring_degree) != config.ring_degree:
        raise InputError(
            f"sequence_parallel_size of {config.source} is {config.values['sequence_parallel_size']}, but "
            f"ring_degree is {config.ring_degree}: they must be equal; set ring_degree only."
        )
    if config.get("distributed_executor_backend") == "uni" and config.world_size > 1:
        raise InputError(
            f"distributed_executor_backend of {config.source} is uni, which runs one worker, but the layout "
            f"{layout} takes {config.world_size}; use mp, or leave it out."
        )
