"""The arguments of the verb."""

import argparse
from dataclasses import fields
from pathlib import Path

import pytest

from omni_neuron.wan22.generation.options import GenerateOptions, add_arguments

FLAGS = {
    "model": ("--model", "folder", Path("folder")),
    "negative_prompt": ("--negative-prompt", "grey", "grey"),
    "height": ("--height", "96", 96),
    "width": ("--width", "80", 80),
    "num_frames": ("--num-frames", "9", 9),
    "steps": ("--steps", "3", 3),
    "guidance_scale": ("--guidance-scale", "2.5", 2.5),
    "guidance_scale_2": ("--guidance-scale-2", "1.5", 1.5),
    "flow_shift": ("--flow-shift", "12", 12.0),
    "boundary_ratio": ("--boundary-ratio", "0.5", 0.5),
    "seed": ("--seed", "7", 7),
    "tp": ("--tp", "2", 2),
    "cp": ("--cp", "2", 2),
    "ulysses": ("--ulysses", "2", 2),
    "cfg": ("--cfg", "2", 2),
    "dtype": ("--dtype", "bfloat16", "bfloat16"),
    "stage_config": ("--stage-config", "stage.yaml", Path("stage.yaml")),
    "output": ("--output", "a.mp4", Path("a.mp4")),
    "save_latents": ("--save-latents", "a.safetensors", Path("a.safetensors")),
}


def parse(*words):
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return GenerateOptions.from_arguments(parser.parse_args(["a ball", *words]))


def test_what_is_left_out_is_left_open():
    assert parse() == GenerateOptions("a ball")
    assert GenerateOptions("a ball").output == Path("out.mp4")


@pytest.mark.parametrize("name", FLAGS)
def test_every_flag_arrives_and_changes_nothing_else(name):
    flag, word, value = FLAGS[name]
    assert parse(flag, word) == GenerateOptions("a ball", **{name: value})


def test_json_is_a_switch_and_no_option_lacks_a_flag():
    assert parse("--json") == GenerateOptions("a ball", json=True)
    assert {field.name for field in fields(GenerateOptions)} == {*FLAGS, "prompt", "json"}


@pytest.mark.parametrize(
    "words", [("--steps", "many"), ("--dtype", "float16"), ("--height", "64.5"), ("--unknown", "1")]
)
def test_a_word_that_is_no_value_is_a_usage_error(words, capsys):
    with pytest.raises(SystemExit) as error:
        parse(*words)
    assert error.value.code == 2
    assert words[0] in capsys.readouterr().err
