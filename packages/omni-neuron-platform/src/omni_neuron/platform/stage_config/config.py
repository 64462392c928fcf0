"""What a stage file says, checked, in terms of our own keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from omni_neuron.platform.stage_config.keys import MAX_RANKS
from omni_neuron.runtime.errors import InputError

DEGREES = ("tensor_parallel_size", "ulysses_degree", "ring_degree", "cfg_parallel_size")
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
    def ulysses_degree(self) -> int:
        return int(self.get("ulysses_degree", 1))

    @property
    def context_parallel_size(self) -> int:
        """Ranks that share the tokens of one video."""
        return self.ulysses_degree * int(self.get("ring_degree", 1))

    @property
    def cfg_parallel_size(self) -> int:
        return int(self.get("cfg_parallel_size", 1))

    @property
    def world_size(self) -> int:
        """How many workers, one device each, the layout takes."""
        return self.tensor_parallel_size * self.context_parallel_size * self.cfg_parallel_size

    @property
    def devices(self) -> tuple[int, ...]:
        """The devices in rank order; the first ones where nobody chose."""
        return tuple(self.get("devices", range(self.world_size)))

    @property
    def request_defaults(self) -> dict[str, Any]:
        """What a request gets when it does not say otherwise, by the engine's sampling parameters."""
        return {name: self.values[name] for name in SAMPLING if name in self.values}


def written_indices(indices: tuple[int, ...]) -> str:
    """The list in the only form that every part of vLLM-Omni reads: numbers and commas."""
    return ",".join(map(str, indices))


def check_layout(config: StageConfig) -> None:
    """Refuse settings that contradict each other.

    Raises:
        InputError: names the keys, their values and the remedy.
    """
    layout = " x ".join(f"{name} {config.get(name, 1)}" for name in DEGREES)
    if config.world_size > MAX_RANKS:
        raise InputError(
            f"the layout {layout} of {config.source} takes {config.world_size} ranks, but a host has at most "
            f"{MAX_RANKS} cores; lower a degree."
        )
    if len(config.devices) != config.world_size:
        raise InputError(
            f'devices of {config.source} are "{written_indices(config.devices)}", {len(config.devices)} '
            f"of them, but the layout {layout} takes {config.world_size}; list as many, or leave devices out."
        )
    cp = config.context_parallel_size
    if config.get("sequence_parallel_size", cp) != cp:
        raise InputError(
            f"sequence_parallel_size of {config.source} is {config.values['sequence_parallel_size']}, but "
            f"ulysses_degree x ring_degree is {cp}: they must be equal; leave sequence_parallel_size out."
        )
    placement = config.get("model_config.placement")
    if placement is not None and sorted(placement) != list(range(config.world_size)):
        raise InputError(
            f'placement of {config.source} is "{written_indices(placement)}", but it must hold each rank of '
            f"0..{config.world_size - 1} once; list them, or leave placement out."
        )
    if config.get("model_config.ring_attention") and config.get("ring_degree", 1) == 1:
        raise InputError(
            f"ring_attention of {config.source} is true, but ring_degree is 1, so there is no ring; "
            "raise ring_degree, or leave ring_attention out."
        )
    if config.get("distributed_executor_backend") == "uni" and config.world_size > 1:
        raise InputError(
            f"distributed_executor_backend of {config.source} is uni, which runs one worker, but the layout "
            f"{layout} takes {config.world_size}; use mp, or leave it out."
        )
