"""The catalogue of machines against the figures of the reference tables."""

import math

import pytest

from omni_neuron.distributed.errors import LayoutError
from omni_neuron.distributed.topology import INSTANCES, Fabric, instance
from omni_neuron.runtime.targets import HBM_GIB


@pytest.mark.parametrize(
    ("name", "lnc", "target", "cores", "chips", "hbm", "link", "fabric"),
    [
        ("trn2.48xlarge", None, "trn2", 64, 16, 24, 128, Fabric.TORUS),
        ("trn2.48xlarge", 1, "trn2", 128, 16, 12, 128, Fabric.TORUS),
        ("trn2-ultraserver", 2, "trn2", 256, 64, 24, 64, Fabric.TORUS),
        ("trn3", 2, "trn3", 64, 16, 36, 1024, Fabric.SWITCH),
        ("trn3", 1, "trn3", 128, 16, 18, 1024, Fabric.SWITCH),
        ("trn1.32xlarge", None, "trn1", 32, 16, 16, 48, Fabric.TORUS),
        ("inf2.48xlarge", 1, "inf2", 24, 12, 16, 48, Fabric.TORUS),
        ("cpu", None, "cpu", 256, 1, math.inf, math.inf, Fabric.HOST),
    ],
)
def test_figures(name, lnc, target, cores, chips, hbm, link, fabric):
    machine = instance(name, lnc)
    assert (machine.name, machine.target, machine.cores, machine.chips) == (name, target, cores, chips)
    assert (machine.hbm_gb_per_core, machine.link_gb_s, machine.fabric) == (hbm, link, fabric)
    assert machine.link_source


def test_every_machine_has_chips_of_one_size_and_the_memory_of_its_target():
    for name in INSTANCES:
        machine = instance(name)
        assert len(machine.axis_gb_s) == len(machine.shape)
        assert machine.cores == machine.chips * machine.cores_per_chip
        if name != "cpu":
            assert machine.hbm_gb_per_core == HBM_GIB[machine.target]


def test_the_links_of_a_chip_add_up_to_the_published_bandwidth():
    # Two links per axis and both directions of each; an UltraServer adds 256 GB/s to a trn2 chip.
    published = {
        "trn2.48xlarge": 1024,
        "trn2-ultraserver": 1024 + 256,
        "trn1.32xlarge": 384,
        "inf2.48xlarge": 192,
    }
    for name, gb_s in published.items():
        assert sum(4 * axis for axis in instance(name).axis_gb_s) == gb_s


def test_only_the_rule_for_trn2_is_published():
    assert {name for name in INSTANCES if instance(name).torus_rule} == {"trn2.48xlarge", "trn2-ultraserver"}


def test_unknown_names_and_core_sizes_are_refused():
    with pytest.raises(LayoutError, match=r"instance='trn9' must be .*: the nearest name is trn3\."):
        instance("trn9")
    with pytest.raises(LayoutError, match=r"lnc=4 of trn2\.48xlarge must be 1 or 2\."):
        instance("trn2.48xlarge", lnc=4)
    with pytest.raises(LayoutError, match=r"lnc=2 of inf2\.48xlarge must be 1\."):
        instance("inf2.48xlarge", lnc=2)
