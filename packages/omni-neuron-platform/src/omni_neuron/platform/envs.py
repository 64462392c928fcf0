"""The environment variables of the platform package."""

from omni_neuron.runtime.env_var import EnvVar, integer

omp_num_threads = EnvVar[int | None](
    "OMP_NUM_THREADS", None, integer(1), "Threads of one worker; the engine sets 1 where nobody chose."
)
