"""Who called what, in order, with the variables that a runtime would read then."""

import os

EVENTS: list[dict[str, object]] = []
VARIABLES = (
    "NEURON_RT_VISIBLE_CORES",
    "NEURON_RT_MAP_HBM",
    "NEURON_RT_ROOT_COMM_ID",
    "NEURON_LIBRARY_PATH",
)


def record(event: str, **details: object) -> None:
    variables = {name: os.environ.get(name) for name in VARIABLES}
    EVENTS.append({"event": event, "variables": variables, **details})
