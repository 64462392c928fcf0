"""The door for model packages: entry points of group `omni_neuron.pipelines`.

Such an entry point names a module with a `PIPELINE_REGISTRY`, a sequence of `PipelineEntry`. The module is
imported in every engine process, so it stays light: the pipeline's own module is imported by the engine when
a checkpoint asks for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
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
    """

    model_arch: str
    module: str
    class_name: str
    pre_process: str
    post_process: str


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
