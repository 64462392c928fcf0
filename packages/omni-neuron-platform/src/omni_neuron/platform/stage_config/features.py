"""The keys of what we lack: accepted where they ask for nothing, refused elsewhere."""

from __future__ import annotations

from omni_neuron.platform.stage_config.key import (
    Entry,
    Feature,
    Places,
    engine,
    lacking,
    parallel,
    runtime,
    stage,
    top,
    wide,
)

_OFFLOAD = lacking("offloading of weights")
_QUANTIZATION = lacking("quantisation")
_CACHE = lacking("caching of steps")
_LORA = lacking("LoRA")
_BATCH = lacking("batching of requests")
_DIFFUSERS = lacking("adapter for diffusers pipelines")
_LANGUAGE = "omni-neuron runs diffusion stages only"
_CHAIN = "omni-neuron runs pipelines of one diffusion stage only"
_VAE = lacking("tiling or sharding of the VAE")
_COMPILE = "a component is compiled as one graph of fixed shapes"
_HSDP = lacking("HSDP")

FEATURES: tuple[Entry, ...] = (
    Feature(
        "async_chunk",
        (False,),
        _CHAIN,
        places=Places(("async_chunk", "stages.async_chunk"), ("async_chunk",)),
    ),
    *top(
        Feature("session_mode", ("turn",), lacking("duplex sessions")),
        Feature("duplex_session", ({},), lacking("duplex sessions")),
        Feature("model_runner", ("v1",), lacking("second model runner")),
        Feature("active_stream_window", (0,), _LANGUAGE),
        Feature("connectors", ({},), _CHAIN),
        Feature("edges", ([],), _CHAIN),
        Feature("platforms", ({},), lacking("sections by platform"), "write the values into the stage"),
        Feature(
            "base_config", (), lacking("inheritance of files"), "write the inherited values into the file"
        ),
        Feature("custom_voice_dir", (), _LANGUAGE),
    ),
    *stage(
        Feature("final_output", (True,), _CHAIN),
        Feature("final_output_type", ("video",), "omni-neuron makes video only"),
        Feature("engine_input_source", ([],), _CHAIN),
        Feature("input_sources", ([],), _CHAIN),
        Feature("is_comprehension", (False,), _LANGUAGE),
        Feature("input_connectors", ({},), _CHAIN),
        Feature("output_connectors", ({},), _CHAIN),
        Feature("default_pooling_params", ({},), _LANGUAGE),
    ),
    *runtime(None, Feature("process", (True,), "a stage always has its process")),
    *runtime("num_replicas", Feature("num_replicas", (1,), lacking("replicas of a stage"))),
    *parallel(
        Feature("ulysses_degree", (1,), lacking("sequence parallelism over heads"), "use ring_degree"),
        Feature("allgather_degree", (1,), lacking("such degree"), "use ring_degree"),
        Feature("ulysses_mode", ("strict",), lacking("sequence parallelism over heads")),
        Feature("ulysses_a2a_permute", (False,), lacking("sequence parallelism over heads")),
        Feature("mask_sp_padding", (False,), "padding is always masked"),
        Feature("vae_patch_parallel_size", (1,), _VAE),
        Feature("vae_parallel_mode", ("tile",), _VAE),
        Feature("text_encoder_tp_size", (1,), "the text encoder is sharded over the tensor-parallel group"),
        Feature("enable_expert_parallel", (False,), lacking("expert parallelism")),
        Feature("use_hsdp", (False,), _HSDP),
        Feature("hsdp_shard_size", (-1,), _HSDP),
        Feature("hsdp_replicate_size", (1,), _HSDP),
    ),
    *parallel(
        Feature("pipeline_parallel_size", (1,), lacking("pipeline parallelism")),
        Feature("data_parallel_size", (1,), lacking("data parallelism")),
        for_the_file=True,
    ),
    *wide(
        Feature("quantization", (), _QUANTIZATION),
        Feature("enable_prefix_caching", (False,), _LANGUAGE),
        Feature("enable_chunked_prefill", (False,), _LANGUAGE),
        Feature("stage_init_timeout", (), "it is an argument of Omni", "pass it there"),
        Feature("init_timeout", (), "it is an argument of Omni", "pass it there"),
    ),
    *engine(
        Feature("model_stage", ("dit", "diffusion"), "omni-neuron runs diffusion stages only"),
        Feature("model_arch", (), "the architecture follows from the pipeline", "use model_class_name"),
        Feature(
            "load_format",
            ("default", "auto"),
            "vLLM-Omni drops it without a word",
            "use diffusion_load_format",
        ),
        Feature("max_batch_size", (1,), _BATCH),
        Feature("request_batch_max_wait_ms", (0,), _BATCH),
        Feature(
            "diffusion_attention_backend",
            ("auto",),
            "it is the old name",
            "use diffusion_attention_config.default",
        ),
        Feature("engine_backend", ("default",), lacking("other engine")),
        Feature("diffusion_model_runner_cls", (), "the model runner belongs to the platform"),
        Feature("worker_cls", ("auto",), "the worker belongs to the platform", "use worker_extension_cls"),
        Feature("task_type", (), lacking("tasks within a pipeline")),
        Feature("additional_config", ({},), "nothing reads free settings"),
        Feature("extras", ({},), "nothing reads free settings"),
        Feature("step_execution", (False,), lacking("execution by step")),
        Feature("streaming_output", (False,), lacking("streaming of frames")),
        Feature("video_output_transport", ({},), lacking("post-processing on the device")),
        Feature("enable_sleep_mode", (False,), lacking("sleep mode")),
        Feature("disable_autocast", (False,), "the models set every dtype themselves"),
        Feature("enable_prompt_embed_cache", (False,), lacking("caching of prompt embeddings")),
        Feature("prompt_embed_cache_size", (32,), lacking("caching of prompt embeddings")),
        Feature("enable_diffusion_pipeline_profiler", (False,), "the parts of a request are always timed"),
        Feature("profiler_config", ({},), lacking("profiler")),
        Feature("fa_deterministic", (False,), "attention is always deterministic"),
        Feature("diffusion_compile_granularity", ("regional",), _COMPILE),
        Feature("diffusion_compile_dynamic", (False,), _COMPILE),
        Feature("compilation_config", ({},), _COMPILE),
        Feature("cache_backend", ("none",), _CACHE),
        Feature("cache_config", ({},), _CACHE),
        Feature("cache_strategy", ("none",), _CACHE),
        Feature("enable_cache_dit_summary", (False,), _CACHE),
        Feature("quantization_config", (), _QUANTIZATION),
        Feature("diffusion_quantization_config", (), _QUANTIZATION),
        Feature("diffusion_kv_cache_dtype", ("auto",), _QUANTIZATION),
        Feature("diffusion_kv_cache_skip_steps", (), _QUANTIZATION),
        Feature("diffusion_kv_cache_skip_layers", (), _QUANTIZATION),
        Feature("lora_path", (), _LORA),
        Feature("lora_scale", (1,), _LORA),
        Feature("lora_backend", ("peft",), _LORA),
        Feature("max_cpu_loras", (1,), _LORA),
        Feature("vae_use_slicing", (False,), _VAE),
        Feature("vae_use_tiling", (False,), _VAE),
        Feature("vae_fast_path", ("lossless", "off"), "the fast path needs CUDA"),
        Feature("diffusion_offload_config", ({},), _OFFLOAD),
        Feature("enable_cpu_offload", (False,), _OFFLOAD),
        Feature("enable_layerwise_offload", (False,), _OFFLOAD),
        Feature("enable_distributed_layerwise_offload", (False,), _OFFLOAD),
        Feature("dlo_use_allgather", (True,), _OFFLOAD),
        Feature("dlo_resident_layers", (0,), _OFFLOAD),
        Feature("dlo_host_registration_limit_gib", (0,), _OFFLOAD),
        Feature("host_weight_runtime_mode", ("disabled",), _OFFLOAD),
        Feature("host_weight_runtime_root", (), _OFFLOAD),
        Feature("pin_cpu_memory", (True,), _OFFLOAD),
        Feature("enable_multithread_weight_load", (True,), "each rank reads its own slices"),
        Feature("enable_broadcast_weight_load", (False,), "each rank reads its own slices"),
        Feature("num_weight_load_threads", (4,), "each rank reads its own slices"),
        Feature("diffusers_load_kwargs", ({},), _DIFFUSERS),
        Feature("diffusers_call_kwargs", ({},), _DIFFUSERS),
        Feature("auxiliary_text_encoder", (), lacking("second text encoder")),
        Feature("fastvideo_vsa_topk", (), lacking("sparse attention")),
        Feature("max_generated_image_size", (), "it limits image requests"),
        *(
            Feature(name, neutral, _LANGUAGE)
            for name, neutral in (
                ("gpu_memory_utilization", ()),
                ("max_num_batched_tokens", ()),
                ("max_model_len", ()),
                ("async_scheduling", (False,)),
                ("disable_hybrid_kv_cache_manager", (False,)),
                ("mm_processor_cache_gb", (0,)),
                ("mamba_ssm_cache_dtype", ()),
                ("skip_mm_profiling", (True,)),
                ("enable_flashinfer_autotune", (False,)),
                ("config_format", ()),
                ("tokenizer_mode", ("auto",)),
                ("subtalker_sampling_params", ({},)),
                ("silence_ban_frames", (0,)),
                ("tts_max_instructions_length", ()),
                ("omni_kv_config", ({},)),
            )
        ),
    ),
    Feature(
        "max_num_seqs",
        (1,),
        _BATCH,
        "set it to 1",
        Places(
            ("stages.max_num_seqs",),
            ("stage_args.engine_args.max_num_seqs", "stage_args.runtime.max_batch_size"),
        ),
    ),
    *engine(
        Feature("tensor_capture", (), lacking("capture of tensors")),
        Feature(
            "tp_sequence_parallel", (False,), lacking("sequence parallelism within the tensor-parallel group")
        ),
        Feature("quantization", ("bf16",), _QUANTIZATION),
        Feature("modules_to_not_convert", ([],), _QUANTIZATION),
        Feature("comfyui_fp8_model_path", (), _QUANTIZATION),
        Feature("num_layers", (), lacking("truncated models"), "use a smaller checkpoint"),
        block="model_config.",
    ),
)
