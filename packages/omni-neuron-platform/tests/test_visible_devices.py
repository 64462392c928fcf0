import os

import pytest

from omni_neuron.platform.visible_devices import list_visible_devices
from omni_neuron.runtime.errors import InputError

NAME = "NEURON_VISIBLE_DEVICES"


@pytest.mark.parametrize(("written", "listed"), [("0-3", "0,1,2,3"), ("8,2-3", "8,2,3"), ("5", "5")])
def test_ranges_are_written_out_in_order(written: str, listed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, written)
    list_visible_devices()
    assert os.environ[NAME] == listed


def test_an_unset_variable_stays_unset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(NAME, raising=False)
    list_visible_devices()
    assert NAME not in os.environ


def test_a_bad_value_is_an_error_that_names_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, "3-0")
    with pytest.raises(InputError, match=NAME):
        list_visible_devices()
