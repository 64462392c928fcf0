"""The names of vllm-neuron, whose import loads Lite."""

import libtorch_neuronx_lite  # noqa: F401


def register():
    return "vllm_neuron.vllm.platform.NeuronPlatform"
