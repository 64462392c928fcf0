"""Entry of the `omni-neuron` command."""

import argparse
import os
import select
import sys
from collections.abc import Sequence
from importlib.metadata import version

from rich_argparse import RichHelpFormatter

from omni_neuron.cli import envs
from omni_neuron.cli.failure import report
from omni_neuron.cli.leftovers import refusal
from omni_neuron.cli.verbs import installed_verbs, load, summary

PROGRAM = "omni-neuron"
STDOUT = 1
LEFT = 141  # what a shell says of a program that wrote to a closed pipe


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb and return the exit status; `--help`, `--version` and usage errors leave by SystemExit."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    verb = called_verb(arguments)
    debug = "--debug" in arguments
    try:
        debug = debug or envs.debug()
        status = _list_verbs(arguments) if verb is None else _run(verb, arguments)
        if sys.stdout is not None:  # closed by the caller, as with `>&-`
            sys.stdout.flush()
        return status
    except BrokenPipeError as error:
        if not reader_has_left():
            return report(error, f"{PROGRAM} {verb}", debug=debug)
        os.dup2(os.open(os.devnull, os.O_WRONLY), STDOUT)  # Python flushes once more when it ends
        return LEFT
    except (Exception, KeyboardInterrupt) as error:
        return report(error, PROGRAM if verb is None else f"{PROGRAM} {verb}", debug=debug)


def reader_has_left() -> bool:
    """Whether standard output is a pipe that nobody reads any more, as after `| head`."""
    poll = select.poll()
    poll.register(STDOUT, 0)
    return any(events & (select.POLLERR | select.POLLHUP) for _, events in poll.poll(0))


def called_verb(arguments: Sequence[str]) -> str | None:
    """The first word that is not an option; None when there is none, or help was asked for before it."""
    for argument in arguments:
        if argument in ("-h", "--help"):
            return None
        if not argument.startswith("-"):
            return argument
    return None


def _run(verb: str, arguments: Sequence[str]) -> int:
    module = load(verb, installed_verbs())
    parser, subparsers = _parser()
    # An abbreviation would escape the search for --debug that errors depend on.
    verb_parser = subparsers.add_parser(
        verb, description=module.SUMMARY, formatter_class=RichHelpFormatter, allow_abbrev=False
    )
    _add_debug(verb_parser, default=argparse.SUPPRESS)  # must not overwrite what stood before the verb
    module.add_arguments(verb_parser)
    debug, rest = _without_debug(arguments)  # which may also stand behind the action of a verb
    parsed, leftovers = parser.parse_known_args(rest)
    if leftovers:
        raise refusal(leftovers, verb_parser)
    parsed.debug = debug
    return module.run(parsed)


def _without_debug(arguments: Sequence[str]) -> tuple[bool, list[str]]:
    """Whether `--debug` stands among the options, and the arguments without it."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    options = [argument for argument in arguments[:end] if argument != "--debug"]
    return len(options) < end, [*options, *arguments[end:]]


def _list_verbs(arguments: Sequence[str]) -> int:
    parser, subparsers = _parser()
    for name, point in installed_verbs().items():
        subparsers.add_parser(name, help=summary(point))
    parser.parse_args(arguments)
    parser.error("a verb is required")


def _parser() -> tuple[argparse.ArgumentParser, "argparse._SubParsersAction[argparse.ArgumentParser]"]:
    """What may stand before the verb, and the place for verbs."""
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        description="AWS Neuron backend of vLLM-Omni's diffusion engine.",
        formatter_class=RichHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {version(PROGRAM)}")
    _add_debug(parser, default=False)
    return parser, parser.add_subparsers(title="verbs", dest="verb", metavar="VERB", required=True)


def _add_debug(parser: argparse.ArgumentParser, default: bool | str) -> None:
    parser.add_argument(
        "--debug", action="store_true", default=default, help="show the traceback of an error"
    )
