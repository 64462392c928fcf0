"""What of vLLM-Omni's configuration cannot run on Neuron, refused by name before any model is built."""

from __future__ import annotations

from typing import Any

from vllm_omni.diffusion.attention.layer import Attention

from omni_neuron.platform.attention_choice import HEAD_SIZE_UNKNOWN, backend_path
from omni_neuron.platform.parallel import RING_ATTENTION, layout_of
from omni_neuron.platform.stage_config.config import DEGREES, StageConfig, check_layout
from omni_neuron.platform.stage_config.features import FEATURES
from omni_neuron.platform.stage_config.keys import MAX_CFG
from omni_neuron.platform.stage_config.reading import read_value
from omni_neuron.platform.stage_config.table import BY_NAME
from omni_neuron.runtime.errors import InputError
from omni_neuron.runtime.mode import detect_mode

SOURCE, MODEL_CONFIG = "the engine's configuration", "model_config"


def check_config(od_config: Any) -> None:
    """Refuse a configuration that Neuron cannot run.

    Raises:
        InputError: one sentence with the field, its value and the remedy.
    """
    _refuse_features(od_config)
    if od_config.parallel_config.cfg_parallel_size > MAX_CFG:
        raise InputError(
            f"cfg_parallel_size is {od_config.parallel_config.cfg_parallel_size}: guidance has two branches; "
            "set 1 or 2."
        )
    _check_settings(od_config)
    layout = layout_of(od_config)
    if detect_mode().is_hardware and od_config.enforce_eager and layout.world_size > 1:
        raise InputError(
            f"enforce_eager is true with {layout.world_size} ranks, but on a Neuron device collectives run "
            "within compiled graphs only; leave enforce_eager out, or use one rank."
        )
    _check_attention(od_config.diffusion_attention_config, (od_config.model_config or {}).get(RING_ATTENTION))


def _check_settings(od_config: Any) -> None:
    """Settings of `model_config` that we act on, alone and with the degrees, by the rules of stage files."""
    values: dict[str, Any] = {name: getattr(od_config.parallel_config, name) for name in DEGREES}
    for setting, value in (od_config.model_config or {}).items():
        key = BY_NAME.get(f"{MODEL_CONFIG}.{setting}")
        if key is not None and value is not None:
            values[key.name] = read_value(key, value, f"{key.name} is", SOURCE)
    check_layout(StageConfig(values, SOURCE))


def _check_attention(attention: Any, ring_attention: bool | None) -> None:
    specs = {} if attention is None else {"default": attention.default, **attention.per_role}
    if ring_attention and specs.get("self") is not None:
        raise InputError(
            f"the attention backend of self is {specs['self'].backend}, but {RING_ATTENTION} is true, which "
            "computes self-attention in blocks of its own; leave one of them out."
        )
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


def _refuse_features(od_config: Any) -> None:
    """By the table of stage files, since arguments of `Omni` and the engine's command line pass those by."""
    settings = {f"{MODEL_CONFIG}.{name}": value for name, value in (od_config.model_config or {}).items()}
    for feature in FEATURES:
        value = settings.get(feature.name)
        for config in (od_config, od_config.parallel_config):
            value = getattr(config, feature.name, value)
        if feature.is_switch and not feature.asks_for_nothing(value):
            raise InputError(f"{feature.name} is {value!r}: {feature.reason}; {feature.remedy}.")


def refuse_stock_context_parallelism(pipeline: Any, od_config: Any) -> None:
    """Refuse a pipeline whose attention would shard itself by vLLM-Omni's means: its ring calls CUDA.

    Raises:
        InputError: names the first such attention site.
    """
    if od_config.parallel_config.sequence_parallel_size == 1:
        return
    for name, module in pipeline.named_modules():
        if isinstance(module, Attention) and not module.skip_sequence_parallel:
            raise InputError(
                f"ulysses_degree x ring_degree is {od_config.parallel_config.sequence_parallel_size}, but "
                f"{name} of {type(pipeline).__name__} would use vLLM-Omni's own context parallelism, which "
                "needs CUDA; set both to 1, or use a pipeline of an omni-neuron model package."
            )
