"""Imported by the fork server: all that every worker needs."""

import atexit
import os
from importlib import import_module

from omni_neuron.platform.orphan import ending_when_orphaned
from omni_neuron.platform.permanent import permanent_imports

with ending_when_orphaned(), permanent_imports():
    from omni_neuron.platform import worker  # noqa: F401
    from omni_neuron.platform.plugin import register_neuron_pipelines
    from omni_neuron.platform.registry import pipeline_entries

    register_neuron_pipelines()
    for _module in {entry.module for entry in pipeline_entries()}:
        import_module(_module)

# The server has nothing to tidy up, and taking all those modules down would keep it alive for seconds.
atexit.register(os._exit, 0)
