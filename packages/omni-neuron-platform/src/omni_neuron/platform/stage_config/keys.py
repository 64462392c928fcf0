"""The keys that something on our path acts on."""

from __future__ import annotations

from omni_neuron.platform.stage_config.devices import DEVICES
from omni_neuron.platform.stage_config.key import (
    Entry,
    Key,
    engine,
    parallel,
    runtime,
    sampling,
    stage,
    top,
    wide,
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
    choice,
    integer,
    number,
)

MAX_CFG = 2  # guidance has two branches
MAX_RANKS = 64  # logical cores of a trn2.48xlarge, the largest host that a layout can fill

KEYS: tuple[Entry, ...] = (
    *top(
        Key(
            "pipeline", PIPELINE, "vLLM-Omni: which topology the stages form; found from the model if absent"
        ),
    ),
    *stage(
        Key("stage_id", integer(0, 0), "vLLM-Omni: the stage of the pipeline that this block is for"),
        Key("stage_type", choice("diffusion"), "this reader: other stages are refused"),
    ),
    *runtime("devices", Key("devices", DEVICES, "vLLM-Omni: the cores of the workers, in rank order")),
    *runtime("env", Key("env", ENVIRONMENT, "vLLM-Omni: environment variables of the stage's processes")),
    *parallel(
        Key(
            "tensor_parallel_size",
            integer(1, MAX_RANKS),
            "models and weight loaders: tensor parallelism",
            flag="--tp",
        ),
        Key("ring_degree", integer(1, MAX_RANKS), "transformer: context parallelism", flag="--cp"),
        Key(
            "cfg_parallel_size", integer(1, MAX_CFG), "pipeline: both guidance branches at once", flag="--cfg"
        ),
        Key("sequence_parallel_size", integer(1), "this reader: it must repeat ring_degree"),
    ),
    *wide(
        Key("dtype", DTYPE, "pipeline: the dtype of the models", flag="--dtype"),
        Key(
            "distributed_executor_backend",
            choice("mp", "uni"),
            "vLLM-Omni: worker processes, or one in place",
        ),
        Key("trust_remote_code", BOOLEAN, "vLLM-Omni: when it looks for a configuration beside the model"),
    ),
    *engine(
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
            "diffusion_load_format",
            choice("default", "dummy"),
            "model runner: dummy waits for re_init_pipeline",
        ),
        Key("worker_extension_cls", DOTTED_PATH, "vLLM-Omni: a class that adds methods to the worker"),
    ),
    *engine(
        Key("pipeline_class", DOTTED_PATH, "vLLM-Omni: a pipeline in place of the registered one"),
        block="custom_pipeline_args.",
    ),
    *engine(
        Key("default", ATTENTION, "platform: the attention backend where no role has its own"),
        Key("per_role", ATTENTION_ROLES, "platform: the attention backend by role"),
        block="diffusion_attention_config.",
    ),
    *engine(
        Key(
            "tp_reduce_dtype",
            choice("float32", "bfloat16"),
            "models: payload of tensor-parallel sums; float32 in CPU mode and bfloat16 on hardware if absent",
        ),
        block="model_config.",
    ),
    *sampling(
        Key("height", integer(1), "command and engine: for requests without one", flag="--height"),
        Key("width", integer(1), "command and engine: for requests without one", flag="--width"),
        Key("num_frames", integer(1), "command and engine: for requests without one", flag="--num-frames"),
        Key(
            "num_inference_steps", integer(1), "command and engine: for requests without one", flag="--steps"
        ),
        Key(
            "guidance_scale",
            number(0),
            "command and engine: for requests without one",
            flag="--guidance-scale",
        ),
        Key(
            "guidance_scale_2",
            number(0),
            "command and engine: for requests without one",
            flag="--guidance-scale-2",
        ),
        Key("seed", integer(0), "command and engine: for requests without one", flag="--seed"),
        Key("fps", number(0, above=True), "command and engine: for requests without one"),
    ),
)
