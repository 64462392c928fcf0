from dataclasses import replace

import pytest

from omni_neuron.distributed.planner.amounts import Amounts, Wire
from omni_neuron.distributed.planner.machines import Machine
from omni_neuron.distributed.planner.memory_traffic import MemoryTraffic
from omni_neuron.distributed.planner.seconds import (
    Constants,
    Kernels,
    exposed_ring_seconds,
    kernel_seconds,
    published_seconds,
    wire_seconds,
)

CORE = Machine(flops_per_s=100.0, hbm_gb_s=1e-9, core_to_core_gb_s=1e-9, load_gb_s=1.0)
FITTED = Constants(
    compute_efficiency=0.5, link_efficiency=0.25, message_us=1e6, vae_tflops=2e-12, image_s=3.0, output_ns=1e9
)
USED = Kernels(attention=0.8, linear=0.4)
NOTHING = Amounts(
    linear=0,
    attention=0,
    prompt=0,
    memory=MemoryTraffic(0, 0, 0),
    dequantise=0,
    wires={"encode": Wire(), "denoise": Wire(), "decode": Wire()},
    ring=Wire(),
    ring_cover=0.5,
    images=0,
    vae_encode=0,
    vae_decode=0,
    output_values=0,
    swap=0,
)


def both(**amounts):
    need = replace(NOTHING, **amounts)
    return published_seconds(need, CORE, FITTED).total, kernel_seconds(need, CORE, FITTED, USED).total


@pytest.mark.parametrize(
    ("amounts", "published", "kernels"),
    [
        ({"linear": 100}, 2, 2.5),
        ({"attention": 100}, 2, 1.25),
        ({"prompt": 100}, 2, 2.5),
        ({"memory": MemoryTraffic(7, 0, 0)}, 0, 7),
        ({"memory": MemoryTraffic(0, 7, 0)}, 0, 7),
        ({"memory": MemoryTraffic(0, 0, 7)}, 0, 7),
        ({"linear": 400, "memory": MemoryTraffic(7, 0, 0)}, 8, 10),
        ({"dequantise": 5}, 5, 0),
        ({"images": 1}, 3, 3),
        ({"vae_encode": 4}, 2, 2),
        ({"vae_decode": 4}, 2, 2),
        ({"output_values": 4}, 4, 4),
        ({"swap": 6}, 6, 6),
    ],
)
def test_every_amount_reaches_both_assumptions_at_its_own_rate(amounts, published, kernels):
    assert both(**amounts) == pytest.approx((published, kernels))


@pytest.mark.parametrize("phase", ["encode", "denoise", "decode"])
def test_wires_count_in_their_phase(phase):
    need = replace(NOTHING, wires={**NOTHING.wires, phase: Wire(1.0, 2.0)})
    assert getattr(published_seconds(need, CORE, FITTED), phase) == pytest.approx(1 / 0.25 + 2)


def test_latency_and_bandwidth_add():
    assert wire_seconds(Wire(seconds=1, messages=3), FITTED) == pytest.approx(4 + 3)
    assert Wire(1, 2) + Wire(3, 4) == Wire(4, 6)


@pytest.mark.parametrize(("attention", "exposed"), [(0, 4), (4, 2), (8, 0), (100, 0)])
def test_a_ring_hides_behind_the_attention_beside_it(attention, exposed):
    assert exposed_ring_seconds(replace(NOTHING, ring=Wire(1.0)), FITTED, attention) == exposed
