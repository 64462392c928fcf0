"""Imported by the fork server, and by nothing else: it changes how the process ends."""

import atexit
import os

from omni_neuron.platform.processes.orphan import ending_when_orphaned
from omni_neuron.platform.processes.permanent import permanent_imports

with ending_when_orphaned(), permanent_imports():
    from omni_neuron.platform.processes import preload  # noqa: F401

# The server has nothing to tidy up, and taking all those modules down would keep it alive for seconds.
atexit.register(os._exit, 0)
