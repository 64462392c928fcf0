"""The one place that imports NKI: the compiler's on a Neuron host, elsewhere an interpreter of it.

Only sources of kernels import this module, and only what runs a kernel imports those, so the rest of the
package works where neither is installed. SetupError where there is none.
"""

from typing import Any

from omni_neuron.runtime.adapter import get_adapter

nki: Any = get_adapter().nki()
nl: Any = nki.language
nisa: Any = nki.isa
ncc: Any = nki.collectives

__all__ = ["ncc", "nisa", "nki", "nl"]
