"""Causal 3-D convolution for models: the kernel where it can run, its twin elsewhere."""

from torch import Tensor

from omni_neuron.kernels.causal_conv3d.plan import plan
from omni_neuron.kernels.causal_conv3d.twin import causal_conv3d_twin
from omni_neuron.kernels.gate import can_run_kernel
from omni_neuron.kernels.limits import DTYPES
from omni_neuron.kernels.operator import kernel_operator, launch
from omni_neuron.kernels.shapes import require_dims, require_shape
from omni_neuron.runtime.errors import InputError

SOURCE = "omni_neuron.kernels.causal_conv3d.kernel:causal_conv3d_kernel"
KERNEL_SIZES = ((3, 3, 3), (3, 1, 1), (1, 3, 3), (1, 1, 1))
MAX_CHANNELS = 2048


def fits_causal_conv3d(x: Tensor, weight: Tensor, bias: Tensor, history: Tensor | None) -> bool:
    """The kernel's gate: one dtype, a kernel size of the Wan VAE, and tiles that fit SBUF.

    The last refuses only what no Wan VAE has: 3x3x3 over more than 1,024 channels in fp32.
    """
    kt, kh, kw, inputs, outputs = weight.shape
    height, width = x.shape[3:]
    return (
        x.dtype in DTYPES
        and all(given is None or given.dtype == x.dtype for given in (weight, bias, history))
        and (kt, kh, kw) in KERNEL_SIZES
        and x.numel() > 0
        and 0 < max(inputs, outputs) <= MAX_CHANNELS
        and plan(inputs, outputs, kt, kh, height, width, x.dtype.itemsize)[2] > 0
    )


def _require(x: Tensor, weight: Tensor, bias: Tensor, history: Tensor | None) -> None:
    require_dims("x", x, "[B, Cin, T, H, W]")
    require_dims("weight", weight, "[kt, kh, kw, Cin, Cout]")
    batch, channels, frames, height, width = x.shape
    kt, kh, kw, _, outputs = weight.shape
    if not frames or not kh % 2 or not kw % 2:
        raise InputError(
            f"A convolution of {kt}x{kh}x{kw} over {frames} frames: it needs a frame and an odd kh and kw."
        )
    require_shape("weight", weight, (kt, kh, kw, channels, outputs))
    require_shape("bias", bias, (outputs,))
    require_shape("history", history, (batch, channels, kt - 1, height, width))


def _fake(x: Tensor, weight: Tensor, bias: Tensor, history: Tensor | None) -> Tensor:
    return x.new_empty(x.shape[0], weight.shape[4], *x.shape[2:])


@kernel_operator(_fake)
def _causal_conv3d(x: Tensor, weight: Tensor, bias: Tensor, history: Tensor | None) -> Tensor:
    past = history if weight.shape[0] > 1 else None
    result: Tensor = launch(SOURCE, x, weight, bias, past)
    return result


def causal_conv3d(x: Tensor, weight: Tensor, bias: Tensor, history: Tensor | None = None) -> Tensor:
    """3-D convolution of stride 1 that looks only backwards in time.

    In space it pads with zeros to the same size; in time `kt - 1` frames stand in front of x.

    Args:
        x: `[B, Cin, T, H, W]`, bfloat16 or float32.
        weight: `[kt, kh, kw, Cin, Cout]` as `pack_weight` makes it, the dtype of x.
        bias: `[Cout]`, the dtype of x.
        history: `[B, Cin, kt - 1, H, W]`, the frames before x; None for zeros, which cost no work, and where
            kt is 1.

    Returns:
        `[B, Cout, T, H, W]` in the dtype of x, summed in float32 and rounded once. The kernel computes it
        where `can_run_kernel` and `fits_causal_conv3d` say so, its twin elsewhere. A pixel that is not
        finite spoils all that the taps reach, and with the kernel up to three rows above and below.

    Raises:
        InputError: other shapes, an even kh or kw, no frame.
    """
    _require(x, weight, bias, history)
    if can_run_kernel(x) and fits_causal_conv3d(x, weight, bias, history):
        return _causal_conv3d(x, weight, bias, history)
    return causal_conv3d_twin(x, weight, bias, history)
