"""The environment variables of the platform package."""

from omni_neuron.runtime.env_var import FLAG, EnvVar, integer

omp_num_threads = EnvVar[int | None](
    "OMP_NUM_THREADS", None, integer(1), "Threads of one worker; the engine sets 1 where nobody chose."
)
rt_map_hbm = EnvVar[bool](
    "NEURON_RT_MAP_HBM", False, FLAG, "Map device memory into the process; every worker on a device sets 1."
)
