from __future__ import annotations

import pytest
from stage_file_helper import deploy

from omni_neuron.platform.stage_config import read_stage_config
from omni_neuron.runtime.errors import InputError


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(InputError, match=r"absent\.yaml cannot be read: No such file"):
        read_stage_config(tmp_path / "absent.yaml")


@pytest.mark.parametrize(
    "text",
    [
        "stages: [",
        "a: 1\n\tb: 2",
        "\x00",
        "? [a, b]\n: 1",
        "stages:\n- height: 2020-13-45",
        "stages:\n- height: !!int abc",
        "stages: &a [*a]",
        "stages:\n- &a\n  engine_args: *a",
        "stages: " + "[" * 3000,
    ],
)
def test_broken_yaml_is_refused_in_one_line(files, text):
    message = files.refusal(text)
    assert "is not valid YAML" in message
    assert "\n" not in message


def test_a_key_given_twice_in_a_block_is_refused(files):
    assert "'flow_shift' is given twice" in files.refusal(
        "stages:\n- stage_id: 0\n  flow_shift: 5\n  flow_shift: 3\n"
    )


def test_a_block_may_be_merged_into_another_and_its_keys_given_again(files):
    text = "stages:\n- parallel_config: {<<: {ring_degree: 4, cfg_parallel_size: 2}, ring_degree: 2}\n"
    assert files.read(text).values == {"ring_degree": 2, "cfg_parallel_size": 2}


@pytest.mark.parametrize("document", ["", "- 1", "x: 1", {"stages": [], "stage_args": []}])
def test_the_form_must_be_clear(files, document):
    assert "stages" in files.refusal(document)


@pytest.mark.parametrize("stages", [None, {}, "x", [1]])
def test_stages_must_be_a_list_of_blocks(files, stages):
    assert "must be a list of stages" in files.refusal({"stages": stages})


@pytest.mark.parametrize("form", ["stages", "stage_args"])
def test_several_stages_are_refused_by_name(files, form):
    document = {form: [{"stage_id": 0, "model_stage": "thinker"}, {"stage_id": 1, "model_stage": "talker"}]}
    assert "has 2 stages (thinker, talker)" in files.refusal(document)


def test_no_stage_is_refused(files):
    assert "has 0 stages (none)" in files.refusal({"stages": []})


def test_a_block_must_hold_keys(files):
    assert "stages[0].parallel_config is 3" in files.refusal(deploy({"parallel_config": 3}))


@pytest.mark.parametrize("block", ["engine_args", "engine_extras"])
def test_blocks_that_the_engine_sees_through_are_seen_through(files, block):
    config = files.read(deploy({block: {"flow_shift": 3, "parallel_config": {"ring_degree": 2}}}))
    assert config.values == {"stage_id": 0, "flow_shift": 3.0, "ring_degree": 2}


def test_an_empty_block_says_nothing(files):
    assert files.read(deploy({"parallel_config": None, "engine_args": {}})).values == {"stage_id": 0}
