"""One finding about this machine."""

from dataclasses import dataclass
from enum import Enum


class Status(Enum):
    OK = "ok"
    NOTE = "note"  # worth knowing, a generation can still run
    FAIL = "fail"


@dataclass(frozen=True)
class Check:
    """What was looked at, what was found, and what to do when it is not right."""

    name: str
    status: Status
    finding: str
    remedy: str | None = None


def ok(name: str, finding: str) -> Check:
    return Check(name, Status.OK, finding)


def note(name: str, finding: str, remedy: str | None = None) -> Check:
    return Check(name, Status.NOTE, finding, remedy)


def fail(name: str, finding: str, remedy: str) -> Check:
    return Check(name, Status.FAIL, finding, remedy)
