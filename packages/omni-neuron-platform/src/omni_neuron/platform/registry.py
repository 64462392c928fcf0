"""The door for model packages: entry points of group `omni_neuron.pipelines`.

Such an entry point names a module with a `PIPELINE_REGISTRY`, a sequence of `PipelineEntry`. The module is
imported in every engine process, so it stays light: the pipeline's own module is imported by the engine when
a checkpoint asks for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import entry_points

GROUP = "omni_neuron.pipelines"


@dataclass(frozen=True)
class PipelineEntry:
    """One architecture that a model package serves on Neuron.

    Attributes:
        model_arch: the `_class_name` of the checkpoint's model_index.json, or the class name in a stage file.
        module: dotted path of the module that holds the class and both functions.
        class_name: the pipeline class.
        pre_process: name of the factory of the request's pre-processing, run in the engine before any worker.
        post_process: name of the factory of the output's post-processing.
        default_size: `height`, `width` and `num_frames` of a request that names none, and so of a warm-up.
        stock_pipelines: what vLLM-Omni calls topologies of one diffusion stage in which the class may stand.
    """

    model_arch: str
    module: str
    class_name: str
    pre_process: str
    post_process: str
    default_size: Mapping[str, int] = field(default_factory=dict)
    stock_pipelines: tuple[str, ...] = ()


def pipeline_entries() -> Iterator[PipelineEntry]:
    """Yield every entry of every installed model package.

    Raises:
        TypeError: a package's registry is missing or holds something else.
    """
    for door in sorted(entry_points(group=GROUP), key=lambda door: door.name):
        entries = getattr(door.load(), "PIPELINE_REGISTRY", None)
        if entries is None or not all(isinstance(entry, PipelineEntry) for entry in entries):
            raise TypeError(
                f"entry point {door.name!r} of {GROUP} -> {door.value} must offer PIPELINE_REGISTRY, "
                "a sequence of omni_neuron.platform.registry.PipelineEntry; fix or remove that package."
            )
        yield from entries
