import pytest

from omni_neuron.runtime.versions import minor, public


@pytest.mark.parametrize(
    ("version", "expected"),
    [("0.29.0rc1", (0, 29)), ("2.11.0.1.0.2651+723ba691", (2, 11)), ("0.30", (0, 30)), ("1.0.post1", (1, 0))],
)
def test_minor(version: str, expected: tuple[int, int]) -> None:
    assert minor(version) == expected


def test_a_version_without_two_numbers_is_an_error() -> None:
    with pytest.raises(ValueError, match="'dev'"):
        minor("dev")


def test_public_drops_the_local_label() -> None:
    assert public("2.13.0+cpu") == public("2.13.0") == "2.13.0"
