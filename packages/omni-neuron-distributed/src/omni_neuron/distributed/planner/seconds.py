"""Seconds of a request under one of two assumptions about how well the cores are used.

``predicted_s`` uses the efficiency that published runs imply, for all arithmetic alike and with everything
between the matrix products inside it. ``predicted_kernels_s`` uses the utilisation of our kernels for
attention and for linear layers, bounds either by memory, and adds what lies between. Links, decoder and
host are the same in both, and no number mixes the two.
"""

from __future__ import annotations

from dataclasses import dataclass

from omni_neuron.distributed.planner.amounts import Amounts, Wire
from omni_neuron.distributed.planner.data_files import read_table
from omni_neuron.distributed.planner.machines import Machine


@dataclass(frozen=True)
class Constants:
    """The fitted constants.

    Args:
        compute_efficiency: share of the dense bf16 peak during text encoding and denoising.
        link_efficiency: share of the nominal speed of links and of chip memory between cores.
        message_us: latency of one step of a collective, microseconds.
        vae_tflops: rate of the VAE on one core, TFLOP/s.
        image_s: seconds that an image to start from costs beyond the encoder's arithmetic.
        output_ns: from the decoder to the caller per colour value, nanoseconds, with the rest of the host.
    """

    compute_efficiency: float
    link_efficiency: float
    message_us: float
    vae_tflops: float
    image_s: float
    output_ns: float


@dataclass(frozen=True)
class Kernels:
    """Utilisation of the bf16 peak that our own kernels reach in the machine model."""

    attention: float
    linear: float


@dataclass(frozen=True)
class Seconds:
    """One request: the encoders, the parts of denoising, the decoder, and the way to the caller.

    ``between`` is what the memory adds outside matrix products, ``waits`` collectives, ``ring`` what of the
    ring does not hide, ``swap`` the exchange of experts.
    """

    encode: float
    linear: float
    attention: float
    between: float
    waits: float
    ring: float
    swap: float
    decode: float
    output: float

    @property
    def denoise(self) -> float:
        return self.linear + self.attention + self.between + self.waits + self.ring + self.swap

    @property
    def total(self) -> float:
        return self.encode + self.denoise + self.decode + self.output


def constants() -> Constants:
    """The constants as fitted to the published points and frozen in the data file."""
    return Constants(**read_table("constants"))


def kernels() -> Kernels:
    """Utilisation from the data file."""
    return Kernels(**read_table("kernels"))


def published_seconds(amounts: Amounts, machine: Machine, fitted: Constants) -> Seconds:
    """Seconds at the efficiency of the published runs."""
    rate = machine.flops_per_s * fitted.compute_efficiency
    return _seconds(
        amounts,
        fitted,
        prompt=amounts.prompt / rate,
        linear=amounts.linear / rate,
        attention=amounts.attention / rate,
        between=amounts.dequantise / (machine.hbm_gb_s * 1e9),
    )


def kernel_seconds(amounts: Amounts, machine: Machine, fitted: Constants, used: Kernels) -> Seconds:
    """Seconds at the utilisation of our kernels; the rest of a forward runs at the speed of memory."""
    memory = machine.hbm_gb_s * 1e9
    linear_rate, attention_rate = machine.flops_per_s * used.linear, machine.flops_per_s * used.attention
    return _seconds(
        amounts,
        fitted,
        prompt=amounts.prompt / linear_rate,
        linear=max(amounts.linear / linear_rate, amounts.memory.linear / memory),
        attention=max(amounts.attention / attention_rate, amounts.memory.attention / memory),
        between=amounts.memory.elementwise / memory,
    )


def wire_seconds(wire: Wire, fitted: Constants) -> float:
    """Alpha-beta model: messages times latency, plus bytes over the speed of the most loaded link."""
    return wire.messages * fitted.message_us * 1e-6 + wire.seconds / fitted.link_efficiency


def exposed_ring_seconds(amounts: Amounts, fitted: Constants, attention: float) -> float:
    """What of the ring does not hide behind the attention that runs beside it."""
    return max(0.0, wire_seconds(amounts.ring, fitted) - amounts.ring_cover * attention)


def _seconds(
    amounts: Amounts, fitted: Constants, *, prompt: float, linear: float, attention: float, between: float
) -> Seconds:
    waits = {phase: wire_seconds(wire, fitted) for phase, wire in amounts.wires.items()}
    vae = fitted.vae_tflops * 1e12
    return Seconds(
        encode=prompt + waits["encode"] + amounts.images * fitted.image_s + amounts.vae_encode / vae,
        linear=linear,
        attention=attention,
        between=between,
        waits=waits["denoise"],
        ring=exposed_ring_seconds(amounts, fitted, attention),
        swap=amounts.swap,
        decode=amounts.vae_decode / vae + waits["decode"],
        output=amounts.output_values * fitted.output_ns * 1e-9,
    )
