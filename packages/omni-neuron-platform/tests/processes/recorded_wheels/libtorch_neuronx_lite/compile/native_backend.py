import os

import torch
from event_log import record


def register():
    record("compile backend", threads=torch.get_num_threads())
    # What is imported for it sets the address that the package's own import sets too.
    os.environ.setdefault("NEURON_RT_ROOT_COMM_ID", "localhost:62182")
    return "neuron_native_lite"
