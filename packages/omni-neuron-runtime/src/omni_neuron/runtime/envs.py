"""The environment variables that several packages share.

The names and their meaning are those of vllm-neuron, Lite and the Neuron runtime; where they would accept
more values than are listed here, the others select routes that this project does not have. What is "for"
one of them acts there alone: here `omni-neuron doctor` checks its value, and nothing else reads it.
"""

from omni_neuron.runtime.env_var import FLAG, TEXT, EnvVar
from omni_neuron.runtime.value_kinds import INDEX_LIST, choice, integer

cpu_mode = EnvVar[bool](
    "VLLM_NEURON_CPU_MODE", False, FLAG, "Run everything on the CPU, also where a Neuron device is present."
)
cpu_compile = EnvVar[bool](
    "VLLM_NEURON_CPU_COMPILE",
    False,
    FLAG,
    "Ask vllm-neuron to compile ahead of time on a host without a device; nothing can be generated then.",
)
backend = EnvVar[str | None](
    "VLLM_NEURON_BACKEND",
    None,
    choice("neuron_native", "neuron"),
    "Compile route of vllm-neuron; the command sets `neuron_native`, since SDK 2.32 reads unset as XLA.",
)
libtorch_neuronx_lite = EnvVar[bool | None](
    "VLLM_NEURON_LIBTORCH_NEURONX_LITE",
    None,
    FLAG,
    "Which hardware library to use: 1 Lite, 0 TorchNeuron, unset whichever is installed (Lite before "
    "TorchNeuron).",
)
debug_mode = EnvVar[bool](
    "VLLM_NEURON_DEBUG_MODE", False, FLAG, "Compile without `fullgraph`, so that graph breaks are legal."
)
disable_nki_kernels = EnvVar[bool](
    "VLLM_NEURON_DISABLE_NKI_KERNELS",
    False,
    FLAG,
    "Run the torch twin of every NKI kernel in its place.",
)
nki_simulator = EnvVar[bool](
    "NKI_SIMULATOR",
    False,
    FLAG,
    "In CPU mode, run NKI kernels in an interpreter in place of their torch twins.",
)
switch_cc = EnvVar[bool](
    "VLLM_NEURON_SWITCH_CC",
    False,
    FLAG,
    "Contiguous replica groups on trn2 in place of those that follow its physical mesh; a layout whose "
    "contiguous groups do not route is then refused.",
)
visible_devices = EnvVar[tuple[int, ...] | None](
    "NEURON_VISIBLE_DEVICES", None, INDEX_LIST, "Logical cores that the engine may use, in rank order."
)
rt_visible_cores = EnvVar[tuple[int, ...] | None](
    "NEURON_RT_VISIBLE_CORES",
    None,
    INDEX_LIST,
    "Cores of one process; every worker sets its own, so it must be unset where the engine starts.",
)
logical_nc_config = EnvVar[int](
    "NEURON_LOGICAL_NC_CONFIG",
    2,
    integer(1, 2),
    "For the Neuron runtime: physical cores per logical core; must match the compiler's `--lnc`.",
)
platform_target_override = EnvVar[str | None](
    "NEURON_PLATFORM_TARGET_OVERRIDE",
    None,
    TEXT,
    "Compile for this target, such as `trn2`, without asking the device.",
)
rt_root_comm_id = EnvVar[str | None](
    "NEURON_RT_ROOT_COMM_ID",
    None,
    TEXT,
    "host:port where the collectives meet; removed before Lite is imported, as a stale one can deadlock.",
)
library_path = EnvVar[str | None](
    "NEURON_LIBRARY_PATH", None, TEXT, "Runtime library of another stack; removed before Lite is imported."
)
cache_root = EnvVar[str | None](
    "VLLM_CACHE_ROOT", None, TEXT, "Root of vLLM's caches, and of the compiler's working folders."
)
neff_cache_dir = EnvVar[str | None](
    "TORCH_NEURONX_NEFF_CACHE_DIR",
    None,
    TEXT,
    "For Lite: compiled graphs; put it on a volume that outlives the container.",
)
nki_compile_cache_url = EnvVar[str | None](
    "NKI_COMPILE_CACHE_URL",
    None,
    TEXT,
    "For NKI: compiled kernels; clear it when a kernel is blamed, a stale entry looks like a kernel bug.",
)
