import pytest

from omni_neuron.runtime.targets import GIB, family, hbm_bytes


@pytest.mark.parametrize(
    ("target", "expected", "gib"),
    [
        ("trn1", "trn1", 16),
        ("trn1n.32xlarge", "trn1n", 16),
        ("trn2", "trn2", 24),
        ("trn3-rev2", "trn3", 36),
        ("trn3pre", "trn3", 36),
        ("inf2", "inf2", 16),
        ("trn4", None, 24),
        ("cpu", None, 24),
    ],
)
def test_family_and_memory(target: str, expected: str | None, gib: int) -> None:
    assert family(target) == expected
    assert hbm_bytes(target) == gib * GIB
