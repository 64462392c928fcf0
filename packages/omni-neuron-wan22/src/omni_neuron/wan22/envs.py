"""The environment variables of the Wan2.2 package."""

from omni_neuron.runtime.env_var import FLAG, TEXT, EnvVar

cache = EnvVar[str | None](
    "OMNI_NEURON_CACHE",
    None,
    TEXT,
    "Folder for what can be made again, such as the tiny checkpoint; unset, the user's cache folder.",
)
check_ranks = EnvVar[bool](
    "OMNI_NEURON_CHECK_RANKS",
    False,
    FLAG,
    "Compare the final latents of all ranks after every request; a request fails where they differ.",
)
logging_level = EnvVar[str | None](
    "VLLM_LOGGING_LEVEL", None, TEXT, "The engine's log; `generate` sets WARNING where nobody chose."
)
hub_offline = EnvVar[str | None](
    "HF_HUB_OFFLINE",
    None,
    TEXT,
    "1 keeps the engine from asking a model hub; `generate` sets it, as it loads folders.",
)
attention_backend = EnvVar[str | None](
    "DIFFUSION_ATTENTION_BACKEND",
    None,
    TEXT,
    "For vLLM-Omni: the attention backend of every role where the stage's configuration names none, "
    "TORCH_SDPA or FLASH_ATTN; the platform refuses others.",
)
