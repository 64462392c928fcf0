"""Causal 3-D convolution in the catalogue."""

import torch
from torch import Tensor
from torch.nn import functional

from omni_neuron.kernels.causal_conv3d.operator import MAX_CHANNELS, SOURCE
from omni_neuron.kernels.causal_conv3d.twin import causal_conv3d_twin, extended, pack_weight
from omni_neuron.kernels.dtypes import dtype_name
from omni_neuron.kernels.spec import Arguments, Case, KernelSpec, counted, each_rank


def causal_conv3d_oracle(x: Tensor, weight: Tensor, bias: Tensor, history: Tensor | None) -> Tensor:
    kt, kh, kw = weight.shape[:3]
    volume = functional.pad(extended(x, kt - 1, history), (kw // 2, kw // 2, kh // 2, kh // 2))
    return functional.conv3d(volume.double(), weight.permute(4, 3, 0, 1, 2).double(), bias.double())


def arguments(
    inputs: int,
    outputs: int,
    size: tuple[int, int, int],
    shape: tuple[int, ...],
    past: bool = True,
    dtype: torch.dtype = torch.bfloat16,
) -> Arguments:
    """Those of the kernel; see `case`."""
    generator = torch.Generator().manual_seed(inputs + outputs)
    batch, frames, height, width = shape
    x = torch.randn(batch, inputs, size[0] - 1 + frames, height, width, generator=generator).to(dtype)
    fan_in = inputs * size[0] * size[1] * size[2]
    weight = torch.randn(outputs, inputs, *size, generator=generator) / fan_in**0.5
    bias = torch.randn(outputs, generator=generator)
    before = size[0] - 1
    history = x[:, :, :before].contiguous() if past and before else None
    return x[:, :, before:].contiguous(), pack_weight(weight).to(dtype), bias.to(dtype), history


def case(
    inputs: int,
    outputs: int,
    size: tuple[int, int, int],
    shape: tuple[int, ...],
    past: bool = True,
    dtype: torch.dtype = torch.bfloat16,
) -> Case:
    """A convolution of `inputs` to `outputs` channels over `shape` (batch, frames, height, width)."""
    batch, frames, height, width = shape
    title = (
        f"{inputs} to {outputs}, {'x'.join(map(str, size))}, {counted(frames, 'frame')} of {height}x{width}"
        f"{'' if past or size[0] == 1 else ', no history'}{f', batch {batch}' if batch > 1 else ''}, "
        f"{dtype_name(dtype)}"
    )
    return Case(
        title,
        (arguments(inputs, outputs, size, shape, past, dtype),),
        2 * inputs * outputs * batch * useful_taps(size, shape[1:], past),
    )


def useful_taps(size: tuple[int, int, int], shape: tuple[int, ...], past: bool) -> int:
    """Pairs of a pixel of the result and a pixel that it is computed from: padding is none.

    `shape` is (frames, height, width), and `past` whether there are frames before them.
    """
    frames, height, width = shape
    return (
        (frames * size[0] if past else sum(max(frames - back, 0) for back in range(size[0])))
        * sum(max(height - abs(row - size[1] // 2), 0) for row in range(size[1]))
        * sum(max(width - abs(column - size[2] // 2), 0) for column in range(size[2]))
    )


CUBE, TIME, PLANE, POINT = (3, 3, 3), (3, 1, 1), (1, 3, 3), (1, 1, 1)

CAUSAL_CONV3D = KernelSpec(
    name="causal_conv3d",
    summary="Causal 3-D convolution of the Wan VAE, with the frames before as an argument",
    source=SOURCE,
    limits=(
        "kernels 3x3x3, 3x1x1, 1x3x3 and 1x1x1 with stride 1 and a bias",
        f"up to {MAX_CHANNELS:,} channels",
        "one dtype, bf16 or fp32",
        "the weights of 128 output channels and a few rows of input fit SBUF: all shapes of the Wan VAEs do",
    ),
    roundings=("output",),
    twin=each_rank(causal_conv3d_twin),
    oracle=each_rank(causal_conv3d_oracle),
    cases=lambda: (
        case(384, 384, CUBE, (1, 1, 12, 26)),
        case(192, 192, CUBE, (1, 2, 11, 52)),
        case(96, 96, CUBE, (1, 2, 9, 64), past=False),
        case(16, 384, CUBE, (1, 1, 20, 26)),
        case(96, 3, CUBE, (1, 2, 11, 30)),
        case(256, 12, CUBE, (1, 1, 10, 20)),
        case(48, 160, CUBE, (2, 1, 5, 7)),
        case(20, 40, CUBE, (1, 3, 1, 2)),
        case(384, 768, TIME, (1, 2, 6, 26)),
        case(384, 192, PLANE, (1, 2, 10, 20)),
        case(192, 384, POINT, (1, 1, 12, 52)),
        case(96, 40, PLANE, (1, 1, 4, 530)),
        case(150, 70, CUBE, (1, 2, 5, 9), dtype=torch.float32),
    ),
    roofline=lambda: (
        case(384, 384, CUBE, (1, 1, 60, 104)),
        case(192, 192, CUBE, (1, 4, 18, 416)),
        case(96, 96, CUBE, (1, 4, 32, 832)),
        case(96, 3, CUBE, (1, 4, 16, 832)),
        case(192, 384, POINT, (1, 2, 32, 208)),
    ),
)
