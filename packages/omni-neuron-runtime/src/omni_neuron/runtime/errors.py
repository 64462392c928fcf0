"""The two ways a run can be refused.

The command line maps them to its exit status: 2 for input that the caller can correct, 1 for the rest.
A message is one sentence that names the field, the value, the rule and, where there is one, the remedy.
"""


class InputError(ValueError):
    """A value that the caller gave breaks a rule."""


class SetupError(RuntimeError):
    """The machine or its installed packages cannot do what was asked."""
