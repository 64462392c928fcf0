"""What plugs the Wan2.2 models into vLLM-Omni's engine.

This module is the package's door (entry point group `omni_neuron.pipelines`), so it imports nothing heavy.
"""

from omni_neuron.platform.registry import PipelineEntry
from omni_neuron.wan22.request import DEFAULT_FRAMES, DEFAULT_HEIGHT, DEFAULT_WIDTH

_MODULE = "omni_neuron.wan22.pipelines.text_to_video"

# `Wan22Pipeline` is what stage files of the 0.24 form call it, `WanPipeline` what checkpoints do.
PIPELINE_REGISTRY = tuple(
    PipelineEntry(
        model_arch=name,
        module=_MODULE,
        class_name="NeuronWanPipeline",
        pre_process="get_wan22_pre_process_func",
        post_process="get_wan22_post_process_func",
        default_size={"height": DEFAULT_HEIGHT, "width": DEFAULT_WIDTH, "num_frames": DEFAULT_FRAMES},
        stock_pipelines=("wan2_2_ti2v",),
    )
    for name in ("WanPipeline", "Wan22Pipeline")
)
