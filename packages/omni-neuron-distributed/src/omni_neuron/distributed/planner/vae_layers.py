"""The layers of the Wan VAE in order, each with its place on the ladder of resolutions.

Widths and order are those of diffusers' ``AutoencoderKLWan``; a layer knows how often its input has been
up-sampled so far, so that its work follows from the size of the latent alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from omni_neuron.distributed.planner.geometry import VAE


@dataclass(frozen=True)
class Layer:
    """A convolution (``kernel`` taps), or the attention of the middle block (``kernel`` 0).

    ``space`` and ``time`` count the doublings between the latent grid and the layer's output;
    ``norm`` is the number of scale parameters of the norm before it.
    """

    inputs: int
    outputs: int
    kernel: int
    space: int
    time: int
    norm: int = 0
    skips_first: bool = False
    cached: bool = False

    @property
    def parameters(self) -> int:
        """Weights, biases and norm scales."""
        return self.inputs * self.outputs * self.kernel + (self.outputs if self.kernel else 0) + self.norm

    def positions(self, frames: int, rows: int, columns: int) -> int:
        """Output positions for a latent of ``frames`` x ``rows`` x ``columns``."""
        return self.output_frames(frames) * (rows << self.space) * (columns << self.space)

    def output_frames(self, frames: int) -> int:
        """Frames after the layer: the first latent frame stays one frame at every rung."""
        later = (frames - 1) << self.time
        return later if self.skips_first else 1 + later

    def flops(self, frames: int, rows: int, columns: int) -> int:
        """Two per multiply-add."""
        positions = self.positions(frames, rows, columns)
        if self.kernel:
            return 2 * self.inputs * self.outputs * self.kernel * positions
        area = (rows << self.space) * (columns << self.space)
        return 4 * area * self.inputs * positions


def _residual(inputs: int, outputs: int, space: int, time: int) -> Iterator[Layer]:
    yield Layer(inputs, outputs, 27, space, time, norm=inputs, cached=True)
    yield Layer(outputs, outputs, 27, space, time, norm=outputs, cached=True)
    if inputs != outputs:
        yield Layer(inputs, outputs, 1, space, time)


def _middle(width: int, space: int, time: int) -> Iterator[Layer]:
    yield from _residual(width, width, space, time)
    yield Layer(width, 3 * width, 1, space, time, norm=width)
    yield Layer(width, width, 0, space, time)
    yield Layer(width, width, 1, space, time)
    yield from _residual(width, width, space, time)


def decoder_layers(vae: VAE) -> list[Layer]:
    """From latent to pixels (or 2x2 pixel patches)."""
    widths = [vae.decoder_base * m for m in (vae.multipliers[-1], *reversed(vae.multipliers))]
    upsample_time = list(reversed(vae.temporal_downsample))
    layers = [Layer(vae.z_dim, widths[0], 27, 0, 0, cached=True), *_middle(widths[0], 0, 0)]
    space = time = 0
    last = len(vae.multipliers) - 1
    for stage, (inputs, outputs) in enumerate(pairwise(widths)):
        if stage and not vae.residual:
            inputs //= 2
        for block in range(vae.res_blocks + 1):
            layers += _residual(outputs if block else inputs, outputs, space, time)
        if stage < last:
            if upsample_time[stage]:
                layers.append(Layer(outputs, 2 * outputs, 3, space, time, skips_first=True, cached=True))
                time += 1
            space += 1
            layers.append(Layer(outputs, outputs if vae.residual else outputs // 2, 9, space, time))
    layers.append(Layer(widths[-1], vae.image_channels, 27, space, time, norm=widths[-1], cached=True))
    return layers


def encoder_layers(vae: VAE) -> list[Layer]:
    """From pixels (or 2x2 pixel patches) to mean and log-variance of the latent."""
    widths = [vae.base * m for m in (1, *vae.multipliers)]
    last = len(vae.multipliers) - 1
    space, time = last, sum(vae.temporal_downsample)
    layers = [Layer(vae.image_channels, widths[0], 27, space, time, cached=True)]
    for stage, (inputs, outputs) in enumerate(pairwise(widths)):
        for block in range(vae.res_blocks):
            layers += _residual(outputs if block else inputs, outputs, space, time)
        if stage < last:
            space -= 1
            layers.append(Layer(outputs, outputs, 9, space, time))
            if vae.temporal_downsample[stage]:
                time -= 1
                layers.append(Layer(outputs, outputs, 3, space, time, skips_first=True, cached=True))
    layers += _middle(widths[-1], space, time)
    layers.append(Layer(widths[-1], 2 * vae.z_dim, 27, space, time, norm=widths[-1], cached=True))
    return layers
