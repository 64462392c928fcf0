import argparse

import pytest

from omni_neuron.cli.leftovers import refusal
from omni_neuron.runtime.errors import InputError


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--stpes", "3"], "There is no option --stpes; the nearest is --steps."),
        (["red", "--stpes=3"], "There is no option --stpes; the nearest is --steps."),
        (["--xyz"], "There is no option --xyz; --help lists what there is."),
        (
            ["red", "ball"],
            "There is no place for 'red' 'ball'; put the prompt in quotes if it has several words.",
        ),
    ],
)
def test_leftovers_are_one_sentence_with_a_way_out(words: list[str], sentence: str) -> None:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("prompt", metavar="PROMPT")
    parser.add_argument("--steps", type=int)
    parsed, leftovers = parser.parse_known_args(["a", *words])
    assert parsed.prompt == "a"
    error = refusal(leftovers, parser)
    assert type(error) is InputError
    assert str(error) == sentence
