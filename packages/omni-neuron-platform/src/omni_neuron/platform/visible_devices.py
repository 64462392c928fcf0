"""`NEURON_VISIBLE_DEVICES` in the form that every reader understands."""

from __future__ import annotations

from omni_neuron.runtime import envs


def list_visible_devices() -> None:
    """Write ranges such as `0-3` out as `0,1,2,3`, since vLLM and vLLM-Omni split at commas only.

    Raises:
        InputError: the variable holds something else.
    """
    visible = envs.visible_devices()
    if visible is not None:
        envs.visible_devices.set(",".join(map(str, visible)))
