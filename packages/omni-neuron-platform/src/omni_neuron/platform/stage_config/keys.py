"""The keys that something on our path acts on."""

from __future__ import annotations

from omni_neuron.platform.stage_config.key import (
    FILE,
    ON_STAGE,
    PARALLEL,
    PROCESS,
    SAMPLING,
    WIDE,
    Key,
    Places,
)
from omni_neuron.platform.stage_config.pipeline_names import PIPELINE
from omni_neuron.platform.stage_config.values import (
    ATTENTION,
    ATTENTION_ROLES,
    BOOLEAN,
    DOTTED_PATH,
    DTYPE,
    ENVIRONMENT,
    TEXT,
    TRUE,
    number,
)
from omni_neuron.runtime.value_kinds import INDEX_LIST, choice, integer

MAX_CFG = 2  # guidance has two branches
MAX_RANKS = 128  # cores of a trn2.48xlarge, the largest host that a layout can fill, none of them joined
REDUCE_DTYPES = ("float32", "bfloat16")
DEFAULT = "command and engine: for requests without one"
ONE_STAGE = "this reader: other stages are refused"
POSITIVE, DEGREE = integer(1), integer(1, MAX_RANKS)
ONLY_0_24 = Places((), PROCESS.legacy)

KEYS: tuple[Key, ...] = (
    Key("pipeline", PIPELINE, "vLLM-Omni: which topology the stages form; ours if absent", FILE),
    Key("stage_id", integer(0, 0), ONE_STAGE, ON_STAGE, for_reader=True),
    Key("stage_type", choice("diffusion"), ONE_STAGE, ON_STAGE, for_reader=True),
    Key("model_stage", choice("dit", "diffusion"), ONE_STAGE, for_reader=True),
    Key("final_output", TRUE, ONE_STAGE, ON_STAGE, for_reader=True),
    Key("final_output_type", choice("video"), ONE_STAGE, ON_STAGE, for_reader=True),
    Key("process", TRUE, "this reader: a stage always has its process", ONLY_0_24, for_reader=True),
    Key("devices", INDEX_LIST, "vLLM-Omni: the cores of the workers, in rank order", PROCESS),
    Key("env", ENVIRONMENT, "vLLM-Omni: environment variables of the stage's processes", PROCESS),
    Key("tensor_parallel_size", DEGREE, "models and loaders: tensor parallelism", PARALLEL, "--tp"),
    Key("ring_degree", DEGREE, "transformer: context parallelism over tokens", PARALLEL, "--cp"),
    Key("ulysses_degree", DEGREE, "transformer: context parallelism over heads", PARALLEL, "--ulysses"),
    Key(
        "cfg_parallel_size",
        integer(1, MAX_CFG),
        "pipeline: both guidance branches at once",
        PARALLEL,
        "--cfg",
    ),
    Key(
        "sequence_parallel_size",
        POSITIVE,
        "this reader: it must be ulysses_degree x ring_degree",
        PARALLEL,
        for_reader=True,
    ),
    Key("dtype", DTYPE, "pipeline: the dtype of the models", WIDE, "--dtype"),
    Key(
        "distributed_executor_backend",
        choice("mp", "uni"),
        "vLLM-Omni: worker processes, or one in place",
        WIDE,
    ),
    Key("trust_remote_code", BOOLEAN, "vLLM-Omni: when it looks for a configuration beside the model", WIDE),
    Key("model_class_name", TEXT, "vLLM-Omni: the pipeline; found from the model if absent"),
    Key(
        "boundary_ratio",
        number(0, 1),
        "pipeline: where the second expert takes over",
        flag="--boundary-ratio",
    ),
    Key("flow_shift", number(0, above=True), "pipeline: the shift of the schedule", flag="--flow-shift"),
    Key("enforce_eager", BOOLEAN, "model runner: nothing is compiled"),
    Key("skip_warmup", BOOLEAN, "model runner: false runs every component once before the first request"),
    Key(
        "diffusion_load_format", choice("default", "dummy"), "model runner: dummy waits for re_init_pipeline"
    ),
    Key("worker_extension_cls", DOTTED_PATH, "vLLM-Omni: a class that adds methods to the worker"),
    Key(
        "custom_pipeline_args.pipeline_class",
        DOTTED_PATH,
        "vLLM-Omni: a pipeline in place of the registered one",
    ),
    Key(
        "diffusion_attention_config.default",
        ATTENTION,
        "platform: the attention backend where no role has its own",
    ),
    Key("diffusion_attention_config.per_role", ATTENTION_ROLES, "platform: the attention backend by role"),
    Key(
        "model_config.tp_reduce_dtype",
        choice(*REDUCE_DTYPES),
        "models: payload of tensor-parallel sums; float32 in CPU mode and bfloat16 on hardware if absent",
    ),
    Key(
        "model_config.ring_attention",
        BOOLEAN,
        "models: keys and values travel around the ring; every rank gathers them if false or absent",
    ),
    Key(
        "model_config.placement",
        INDEX_LIST,
        "worker: the rank at every position of the layout, counted tp first; found for the machine if absent",
    ),
    Key("height", POSITIVE, DEFAULT, SAMPLING, "--height"),
    Key("width", POSITIVE, DEFAULT, SAMPLING, "--width"),
    Key("num_frames", POSITIVE, DEFAULT, SAMPLING, "--num-frames"),
    Key("num_inference_steps", POSITIVE, DEFAULT, SAMPLING, "--steps"),
    Key("guidance_scale", number(0), DEFAULT, SAMPLING, "--guidance-scale"),
    Key("guidance_scale_2", number(0), DEFAULT, SAMPLING, "--guidance-scale-2"),
    Key("seed", integer(0), DEFAULT, SAMPLING, "--seed"),
    Key("fps", number(0, above=True), DEFAULT, SAMPLING),
)
