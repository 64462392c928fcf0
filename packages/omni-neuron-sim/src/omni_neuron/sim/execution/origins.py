"""Where undefined data came from. Codes travel with the data; the table says what each of them stands for."""

from typing import TYPE_CHECKING

from omni_neuron.sim.memory.buffer import FIRST_ORIGIN, Buffer

if TYPE_CHECKING:
    from omni_neuron.sim.execution.core import Core

_LAST = 255


class Origins:
    """Up to 253 places where something undefined was read, one for each pair of source lines."""

    def __init__(self) -> None:
        self._codes: dict[str, int] = {}

    def code(self, buffer: Buffer, why: str, core: "Core") -> int:
        text = f"{buffer} was {why} and then read by {core.here()}"
        if text not in self._codes:
            self._codes[text] = min(FIRST_ORIGIN + len(self._codes), _LAST)
        return self._codes[text]

    def describe(self, code: int) -> str:
        for text, known in self._codes.items():
            if known == code:
                return text
        return "it was never written"
