"""How an error ends the command: one sentence as the last line of standard error, and an exit status."""

import sys
import traceback

from omni_neuron.runtime.errors import InputError, SetupError

BAD_INPUT = 2
FAILED = 1
INTERRUPTED = 130


def report(error: BaseException, program: str, *, debug: bool) -> int:
    """Print the error and return the exit status: 2 for bad input, 130 for an interrupt, 1 for the rest.

    The first line of a message is its sentence. Further lines, as libraries write them, come above it.
    """
    if debug:
        traceback.print_exception(error)
    if isinstance(error, KeyboardInterrupt):
        print(f"{program}: interrupted", file=sys.stderr)
        return INTERRUPTED
    sentence, *details = _message(error).splitlines()
    for line in details:
        print(line, file=sys.stderr)
    print(f"{program}: error: {sentence}", file=sys.stderr, flush=True)
    return BAD_INPUT if isinstance(error, InputError) else FAILED


def _message(error: BaseException) -> str:
    """Our own errors speak for themselves; the type says what else went wrong."""
    text = str(error).strip()
    if text and isinstance(error, InputError | SetupError):
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
