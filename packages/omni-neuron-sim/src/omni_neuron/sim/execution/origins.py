"""Where undefined data came from. Codes travel with the data; the table says what each of them stands for."""

from typing import TYPE_CHECKING

from omni_neuron.sim.memory.buffer import FIRST_ORIGIN, Buffer

if TYPE_CHECKING:
    from omni_neuron.sim.execution.core import Core

_FIRST = 255


class Origins:
    """Up to 253 places where something undefined was read, one for each pair of source lines.

    Codes count down: where several meet, the largest goes on, which is the place that was first.
    """

    def __init__(self) -> None:
        self._codes: dict[tuple[object, ...], int] = {}
        self._texts: dict[int, str] = {}

    def code(self, buffer: Buffer, why: str, core: "Core") -> int:
        """The code of reading something undefined of `buffer` at the kernel's present line."""
        here = core.here()
        key = (buffer.allocation.where, why, here)
        if key not in self._codes:
            self._codes[key] = max(_FIRST - len(self._codes), FIRST_ORIGIN)
            self._texts.setdefault(self._codes[key], f"{buffer} was {why} and then read by {here}")
        return self._codes[key]

    def describe(self, code: int) -> str:
        return self._texts.get(code, "it was never written")
