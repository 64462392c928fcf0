import json
from pathlib import Path

import pytest

from omni_neuron.distributed.planner.config_fields import ConfigFields, read_fields
from omni_neuron.runtime.errors import InputError

FIELDS = ConfigFields(
    Path("config.json"),
    {
        "one": 1,
        "none": None,
        "sizes": [1, 2],
        "marks": [True, False],
        "on": True,
        "pair": ["library", "Class"],
    },
)


def test_fields_are_read_by_kind():
    assert (FIELDS.count("one"), FIELDS.count("one", 1), FIELDS.count("one", default=3)) == (1, 1, 1)
    assert (FIELDS.counts("sizes"), FIELDS.counts("sizes", 2)) == ((1, 2), (1, 2))
    assert FIELDS.switches("marks", 2) == (True, False)
    assert FIELDS.switch("on")
    assert FIELDS.names_class("pair")


@pytest.mark.parametrize("name", ["none", "absent"])
def test_what_is_left_out_has_its_default(name: str):
    assert FIELDS.count(name, default=3) == 3
    assert not FIELDS.switch(name)
    assert not FIELDS.names_class(name)


def test_a_field_without_default_must_be_there():
    with pytest.raises(InputError, match=r"^config\.json lacks the field 'absent': fetch"):
        FIELDS.count("absent")
    with pytest.raises(
        InputError, match=r"^none=None of config\.json must be a whole number from 1 to 9: take"
    ):
        FIELDS.count("none", 9)


def test_a_file_is_read_once_for_all_fields(tmp_path: Path):
    file = tmp_path / "config.json"
    file.write_text(json.dumps({"one": 1}))
    fields = read_fields(file)
    file.unlink()
    assert (fields.file, fields.count("one")) == (file, 1)
