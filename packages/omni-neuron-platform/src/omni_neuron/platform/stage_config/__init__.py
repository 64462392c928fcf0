"""Stage files: what they may say, how the command line changes them, and how vLLM-Omni gets them.

Light: no part of the engine is imported here.
"""

from omni_neuron.platform.stage_config.config import StageConfig
from omni_neuron.platform.stage_config.deploy_file import WARM_UP_KEY, to_deploy_dict, write_deploy_file
from omni_neuron.platform.stage_config.overrides import apply_overrides
from omni_neuron.platform.stage_config.reading import read_stage_config

__all__ = [
    "WARM_UP_KEY",
    "StageConfig",
    "apply_overrides",
    "read_stage_config",
    "to_deploy_dict",
    "write_deploy_file",
]
