"""A worker against recorded wheels, in a process of its own; prints one line of JSON.

The folder `recorded_wheels`, with metadata beside it, must be on the path.
"""

import json
import os

import torch

from omni_neuron.runtime import mode

mode.chip_count = lambda folder: 16

os.environ["NEURON_RT_ROOT_COMM_ID"] = "stale:1"
os.environ["NEURON_LIBRARY_PATH"] = "/stale"
os.environ["NEURON_VISIBLE_DEVICES"] = "5-6"

from event_log import EVENTS, VARIABLES  # noqa: E402
from vllm_omni.diffusion.data import OmniDiffusionConfig  # noqa: E402
from vllm_omni.platforms import current_omni_platform as platform  # noqa: E402

from omni_neuron.platform.worker import NeuronDiffusionWorker  # noqa: E402

torch.set_num_threads(2)
config = OmniDiffusionConfig(model=None, model_class_name="WanPipeline", num_gpus=1)
worker = NeuronDiffusionWorker(0, 0, config, skip_load_model=True)
print(
    "RESULT",
    json.dumps(
        {
            "events": EVENTS,
            "variables": {name: os.environ.get(name) for name in VARIABLES},
            "gelu": torch.nn.functional.gelu is torch.ops.aten.gelu.default,
            "device": str(worker.device),
            "worker_bases": [base.__name__ for base in type(worker).__mro__],
            "platform_bases": [base.__name__ for base in type(platform).__mro__],
            "platform": {
                "device_count": platform.get_device_count(),
                "float64": platform.supports_float64(),
            },
            "backend": os.environ.get("VLLM_NEURON_BACKEND"),
        }
    ),
    flush=True,
)
os._exit(0)
