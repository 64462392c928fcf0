import pytest

from omni_neuron.distributed.planner.machines import machine
from omni_neuron.distributed.topology import instance
from omni_neuron.runtime.errors import InputError


def test_trn2_has_the_published_peak_and_memory():
    topology = instance("trn2.48xlarge")
    core = machine(topology)
    assert core.flops_per_s * topology.cores == pytest.approx(10.7e15)
    assert core.hbm_gb_s * topology.cores == pytest.approx(46.4e3)


def test_the_published_run_used_31_percent_of_peak():
    assert 522e15 / (machine(instance("trn2.48xlarge")).flops_per_s * 64) / 157.8 == pytest.approx(
        0.31, abs=0.005
    )


def test_lnc_1_halves_a_core():
    one, two = (machine(instance("trn2.48xlarge", lnc=lnc)) for lnc in (1, 2))
    assert two.flops_per_s == 2 * one.flops_per_s


@pytest.mark.parametrize("name", ["trn2-ultraserver", "trn3", "trn1.32xlarge", "inf2.48xlarge"])
def test_every_neuron_instance_has_figures(name):
    core = machine(instance(name))
    assert 0 < core.core_to_core_gb_s < core.hbm_gb_s
    assert core.flops_per_s > 1e13


def test_a_cpu_has_none():
    with pytest.raises(InputError, match=r"instance='cpu' .* nearest valid choice is trn2\.48xlarge"):
        machine(instance("cpu"))
