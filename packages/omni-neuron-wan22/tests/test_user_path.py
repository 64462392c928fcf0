"""Paths as a user writes them."""

from pathlib import Path

import pytest

from omni_neuron.runtime.errors import InputError
from omni_neuron.wan22.user_path import expanded


def test_a_home_is_put_in(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert expanded("output", "~/a.mp4") == tmp_path / "a.mp4"
    assert expanded("output", "a~/b.mp4") == Path("a~/b.mp4")


def test_a_user_who_is_not_there_is_one_sentence():
    with pytest.raises(InputError) as error:
        expanded("output", "~nosuchuser/x.mp4")
    assert str(error.value) == (
        "output is '~nosuchuser/x.mp4', but '~nosuchuser' is no home that is known here; write the path out."
    )
