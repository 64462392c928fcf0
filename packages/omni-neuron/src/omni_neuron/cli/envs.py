"""The environment variables of the command line itself."""

from omni_neuron.runtime.env_var import FLAG, EnvVar

debug = EnvVar[bool]("OMNI_NEURON_DEBUG", False, FLAG, "Show the traceback of an error, like `--debug`.")
