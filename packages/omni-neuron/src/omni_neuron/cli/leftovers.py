"""What a verb's parser could not place: options that do not exist, and words too many."""

import argparse
import difflib
from collections.abc import Sequence

from omni_neuron.runtime.errors import InputError


def refusal(leftovers: Sequence[str], parser: argparse.ArgumentParser) -> InputError:
    """The error for what is left of a command line after `parser` took what it knows.

    Args:
        leftovers: at least one word, in the order of the command line.
        parser: that of the verb.
    """
    options = [word.partition("=")[0] for word in leftovers if word.startswith("-")]
    if options:
        return _unknown_option(options[0], parser)
    words = " ".join(map(repr, leftovers))
    takers = [action for action in parser._actions if not action.option_strings]
    if not takers:
        return InputError(f"There is no place for {words}; leave it out.")
    name = str(takers[-1].metavar or takers[-1].dest).lower()
    return InputError(f"There is no place for {words}; put the {name} in quotes if it has several words.")


def _unknown_option(option: str, parser: argparse.ArgumentParser) -> InputError:
    known = [name for action in parser._actions for name in action.option_strings]
    near = difflib.get_close_matches(option, known, n=1)
    hint = f"the nearest is {near[0]}" if near else "--help lists what there is"
    return InputError(f"There is no option {option}; {hint}.")
