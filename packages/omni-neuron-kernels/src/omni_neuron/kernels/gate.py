"""Whether a kernel may be launched for a tensor. Every kernel adds its own limits of shape to this."""

from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor

from omni_neuron.runtime import envs


def can_run_kernel(tensor: Tensor) -> bool:
    """True where the device of `tensor` executes NKI kernels.

    Never when `VLLM_NEURON_DISABLE_NKI_KERNELS=1` or for a fake tensor, which has no data to launch on: so
    `torch.export` with `strict=False` exports twins, while `torch.compile` keeps the kernels.
    In CPU mode only with the interpreter (`NKI_SIMULATOR=1`); otherwise where the tensor is not on the CPU.
    """
    if envs.disable_nki_kernels() or isinstance(tensor, FakeTensor):
        return False
    if envs.cpu_mode():
        return envs.nki_simulator()
    return tensor.device.type != "cpu"
