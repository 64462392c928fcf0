"""CPU mode for the whole session: the platform is chosen when the engine is first imported."""

import os

os.environ["VLLM_NEURON_CPU_MODE"] = "1"
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ.setdefault("VLLM_LOGGING_LEVEL", "WARNING")
