"""The environment variables of the Wan2.2 package."""

from omni_neuron.runtime.env_var import TEXT, EnvVar

cache = EnvVar[str | None](
    "OMNI_NEURON_CACHE",
    None,
    TEXT,
    "Folder for what can be made again, such as the tiny checkpoint; unset, the user's cache folder.",
)
