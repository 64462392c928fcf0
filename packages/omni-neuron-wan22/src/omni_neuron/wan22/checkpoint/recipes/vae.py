"""Tensors of the Wan2.1 VAE, encoder and decoder, under diffusers' names."""

from collections.abc import Iterator

from omni_neuron.wan22.checkpoint.recipes.geometry import (
    LATENT_CHANNELS,
    VAE_RES_BLOCKS,
    VAE_TEMPORAL,
    VAE_WIDTHS,
    TinyGeometry,
)
from omni_neuron.wan22.checkpoint.recipes.values import Recipe, convolution, norm

CUBE = (3, 3, 3)
POINT = (1, 1, 1)
LEVELS = len(VAE_WIDTHS)


def vae_recipes(geometry: TinyGeometry) -> dict[str, Recipe]:
    """Every tensor of ``AutoencoderKLWan``; the last convolution keeps pixels well inside -1..1."""
    widths = [geometry.vae_base_dim * multiple for multiple in VAE_WIDTHS]
    moments = 2 * LATENT_CHANNELS
    return {
        **_encoder("encoder", widths, moments),
        **convolution("quant_conv", moments, moments, *POINT),
        **convolution("post_quant_conv", LATENT_CHANNELS, LATENT_CHANNELS, *POINT),
        **_decoder("decoder", widths[::-1]),
    }


def _encoder(name: str, widths: list[int], moments: int) -> dict[str, Recipe]:
    recipes = convolution(f"{name}.conv_in", widths[0], 3, *CUBE)
    index, channels = 0, widths[0]
    for level, width in enumerate(widths):
        for _ in range(VAE_RES_BLOCKS):
            recipes |= _residual(f"{name}.down_blocks.{index}", channels, width)
            index, channels = index + 1, width
        if level < LEVELS - 1:
            recipes |= convolution(f"{name}.down_blocks.{index}.resample.1", width, width, 3, 3)
            if VAE_TEMPORAL[level]:
                recipes |= convolution(f"{name}.down_blocks.{index}.time_conv", width, width, 3, 1, 1)
            index += 1
    return recipes | _middle(name, channels) | _head(name, moments, channels, gain=1.0)


def _decoder(name: str, widths: list[int]) -> dict[str, Recipe]:
    recipes = convolution(f"{name}.conv_in", widths[0], LATENT_CHANNELS, *CUBE) | _middle(name, widths[0])
    channels = widths[0]
    for level, width in enumerate(widths):
        block = f"{name}.up_blocks.{level}"
        for index in range(VAE_RES_BLOCKS + 1):
            recipes |= _residual(f"{block}.resnets.{index}", channels, width)
            channels = width
        if level < LEVELS - 1:
            upsampler = f"{block}.upsamplers.0"
            recipes |= convolution(f"{upsampler}.resample.1", width // 2, width, 3, 3)
            if VAE_TEMPORAL[::-1][level]:
                recipes |= convolution(f"{upsampler}.time_conv", 2 * width, width, 3, 1, 1)
            channels = width // 2
    return recipes | _head(name, 3, channels, gain=0.45)


def _middle(name: str, channels: int) -> dict[str, Recipe]:
    attention = f"{name}.mid_block.attentions.0"
    return {
        **_residual(f"{name}.mid_block.resnets.0", channels, channels),
        f"{attention}.norm.gamma": norm(channels, 1, 1),
        **convolution(f"{attention}.to_qkv", 3 * channels, channels, 1, 1),
        **convolution(f"{attention}.proj", channels, channels, 1, 1),
        **_residual(f"{name}.mid_block.resnets.1", channels, channels),
    }


def _head(name: str, out_channels: int, channels: int, gain: float) -> dict[str, Recipe]:
    return {
        f"{name}.norm_out.gamma": norm(channels, *POINT),
        **convolution(f"{name}.conv_out", out_channels, channels, *CUBE, gain=gain),
    }


def _residual(name: str, in_channels: int, out_channels: int) -> dict[str, Recipe]:
    return dict(_residual_parts(name, in_channels, out_channels))


def _residual_parts(name: str, in_channels: int, out_channels: int) -> Iterator[tuple[str, Recipe]]:
    yield f"{name}.norm1.gamma", norm(in_channels, *POINT)
    yield from convolution(f"{name}.conv1", out_channels, in_channels, *CUBE).items()
    yield f"{name}.norm2.gamma", norm(out_channels, *POINT)
    yield from convolution(f"{name}.conv2", out_channels, out_channels, *CUBE).items()
    if in_channels != out_channels:
        yield from convolution(f"{name}.conv_shortcut", out_channels, in_channels, *POINT).items()
