"""The machine of this process: the CPU, or the one that CPU mode is told to act as."""

import pytest

from omni_neuron.distributed.topology import host_topology, instance
from omni_neuron.runtime import envs


def test_an_ordinary_machine_is_a_cpu(monkeypatch):
    monkeypatch.delenv(envs.platform_target_override.name, raising=False)
    assert host_topology() == instance("cpu")


@pytest.mark.parametrize(
    ("target", "lnc", "expected"),
    [
        ("trn2", "2", instance("trn2.48xlarge", lnc=2)),
        ("trn2", "1", instance("trn2.48xlarge", lnc=1)),
        ("trn3-rev2", "2", instance("trn3", lnc=2)),
        ("trn1n", "2", instance("trn1.32xlarge")),
        ("inf2", "1", instance("inf2.48xlarge")),
        ("something else", "2", instance("cpu")),
    ],
)
def test_the_override_names_the_machine_to_act_as(monkeypatch, target, lnc, expected):
    monkeypatch.setenv(envs.platform_target_override.name, target)
    monkeypatch.setenv(envs.logical_nc_config.name, lnc)
    assert host_topology() == expected
