"""What of vLLM-Omni's configuration cannot run on Neuron, refused by name before any model is built."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vllm_omni.diffusion.attention.layer import Attention

from omni_neuron.platform.attention_choice import HEAD_SIZE_UNKNOWN, backend_path
from omni_neuron.platform.parallel import tp_reduce_dtype
from omni_neuron.runtime.errors import InputError

# attribute of OmniDiffusionConfig: values at which the feature is off
_UNSUPPORTED: dict[str, tuple[Any, ...]] = {
    "cache_backend": (None, "none"),
    "enable_cpu_offload": (False,),
    "enable_layerwise_offload": (False,),
    "enable_distributed_layerwise_offload": (False,),
    "enable_prompt_embed_cache": (False,),
    "enable_sleep_mode": (False,),
    "step_execution": (False,),
    "streaming_output": (False,),
    "vae_use_tiling": (False,),
    "vae_use_slicing": (False,),
    "quantization_config": (None,),
    "diffusion_kv_cache_dtype": (None, "auto"),
    "lora_path": (None,),
}
_UNSUPPORTED_PARALLEL: dict[str, tuple[Any, ...]] = {
    "ulysses_degree": (1,),
    "allgather_degree": (1,),
    "pipeline_parallel_size": (1,),
    "data_parallel_size": (1,),
    "vae_patch_parallel_size": (1,),
    "use_hsdp": (False,),
    "enable_expert_parallel": (False,),
}
MAX_CFG = 2


def check_config(od_config: Any) -> None:
    """Refuse a configuration that Neuron cannot run.

    Raises:
        InputError: one sentence with the field, its value and the remedy.
    """
    _refuse_features(od_config, _UNSUPPORTED)
    _refuse_features(od_config.parallel_config, _UNSUPPORTED_PARALLEL)
    if od_config.parallel_config.cfg_parallel_size > MAX_CFG:
        raise InputError(
            f"cfg_parallel_size is {od_config.parallel_config.cfg_parallel_size}: guidance has two branches; "
            "set 1 or 2."
        )
    _check_model_config(od_config.model_config or {})
    _check_attention(od_config.diffusion_attention_config)


def _check_model_config(model_config: Mapping[str, Any]) -> None:
    if model_config.get("tensor_capture") is not None:
        raise InputError(
            "tensor_capture is set, but omni-neuron cannot capture tensors yet; remove the block."
        )
    tp_reduce_dtype(model_config)


def _check_attention(attention: Any) -> None:
    specs = {} if attention is None else {"default": attention.default, **attention.per_role}
    for place, spec in specs.items():
        if spec is None:
            continue
        backend_path(spec.backend, HEAD_SIZE_UNKNOWN)
        options = spec.backend_kwargs()
        if options:
            raise InputError(
                f"attention backend {spec.backend} of {place} has the options {sorted(options)}, "
                "which have no effect on Neuron; remove them."
            )


def _refuse_features(config: Any, features: dict[str, tuple[Any, ...]]) -> None:
    for name, off in features.items():
        value = getattr(config, name, off[0])
        if value not in off:
            raise InputError(
                f"{name} is {value!r}, but omni-neuron does not have that feature yet; "
                f"leave it out or set it to {off[0]!r}."
            )


def refuse_stock_ring(pipeline: Any, od_config: Any) -> None:
    """Refuse a pipeline whose attention would take vLLM-Omni's own ring, which calls a CUDA operator.

    Raises:
        InputError: names the first such attention site.
    """
    if od_config.parallel_config.sequence_parallel_size == 1:
        return
    for name, module in pipeline.named_modules():
        if isinstance(module, Attention) and not module.skip_sequence_parallel:
            raise InputError(
                f"ring_degree is {od_config.parallel_config.ring_degree}, but {name} of "
                f"{type(pipeline).__name__} would use vLLM-Omni's ring attention, which needs CUDA; "
                "set ring_degree to 1, or use a pipeline of an omni-neuron model package."
            )
