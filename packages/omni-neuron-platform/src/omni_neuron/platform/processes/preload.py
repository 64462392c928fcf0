"""All that every worker needs, imported."""

from importlib import import_module

from omni_neuron.platform import worker  # noqa: F401
from omni_neuron.platform.plugin import register_neuron_pipelines
from omni_neuron.platform.registry import pipeline_entries

register_neuron_pipelines()
for _module in {entry.module for entry in pipeline_entries()}:
    import_module(_module)
