"""What the simulated machine refuses, always with the kernel's file and line, the rule and the numbers."""

import os
import sys
from pathlib import Path
from typing import Any, NamedTuple

_OWN = str(Path(__file__).parent) + os.sep


class SourceLine(NamedTuple):
    """A line of kernel source."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


def kernel_line() -> SourceLine:
    """The innermost line on the stack that is not the simulator's own: where the kernel stands now."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_OWN):
        frame = frame.f_back
    return SourceLine(frame.f_code.co_filename, frame.f_lineno)


class KernelError(Exception):
    """A kernel breaks a rule of the machine or of the language.

    `rule` is a stable name (docs/simulator.md lists them), `where` the kernel's line, `what` the sentence
    with the numbers, `core` the place where it ran as `rank R core C`.
    """

    def __init__(
        self, rule: str, what: str, where: SourceLine | None = None, opcode: str = "", core: str = ""
    ) -> None:
        self.rule = rule
        self.what = what
        self.where = where or kernel_line()
        self.opcode = opcode
        self.core = core
        subject = f"{opcode}: " if opcode else ""
        place = f" ({core})" if core else ""
        super().__init__(f"{self.where}: [{rule}] {subject}{what}{place}")

    def __reduce__(self) -> tuple[type["KernelError"], tuple[Any, ...]]:
        return type(self), (self.rule, self.what, self.where, self.opcode, self.core)


class KernelWarning(UserWarning):
    """Something that a device may treat otherwise than the simulator does, or that is rarely meant."""
