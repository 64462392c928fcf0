"""What plugs the Wan2.2 models into vLLM-Omni's engine.

This module is the package's door (entry point group `omni_neuron.pipelines`), so it imports nothing heavy.
"""

from omni_neuron.platform.registry import PipelineEntry

_MODULE = "omni_neuron.wan22.pipelines.text_to_video"

# `Wan22Pipeline` is what stage files of the 0.24 form call it, `WanPipeline` what checkpoints do.
PIPELINE_REGISTRY = tuple(
    PipelineEntry(
        model_arch=name,
        module=_MODULE,
        class_name="NeuronWanPipeline",
        pre_process="get_wan22_pre_process_func",
        post_process="get_wan22_post_process_func",
    )
    for name in ("WanPipeline", "Wan22Pipeline")
)
