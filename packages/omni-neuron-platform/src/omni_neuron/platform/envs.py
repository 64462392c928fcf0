"""The environment variables of the platform package."""

from omni_neuron.runtime.env_var import FLAG, TEXT, EnvVar
from omni_neuron.runtime.value_kinds import integer

omp_num_threads = EnvVar[int | None](
    "OMP_NUM_THREADS", None, integer(1), "Threads of one worker; the engine sets 1 where nobody chose."
)
rt_map_hbm = EnvVar[bool](
    "NEURON_RT_MAP_HBM", False, FLAG, "Map device memory into the process; every worker on a device sets 1."
)
humming_no_build = EnvVar[str | None](
    "HUMMING_DISABLE_PARALLEL_BUILD",
    None,
    TEXT,
    "1 keeps vLLM from compiling CUDA code in the background whenever it is imported; the plugin sets it "
    "where nobody chose.",
)
request_timeout = EnvVar[int | None](
    "VLLM_OMNI_DLO_DP_WAVE_TIMEOUT",
    None,
    integer(1),
    "For vLLM-Omni 0.30: seconds that worker processes may take for one request, ten minutes by its default; "
    "the plugin sets a day where nobody chose, as a first request may compile.",
)
