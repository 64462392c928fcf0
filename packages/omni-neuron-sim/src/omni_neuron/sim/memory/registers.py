"""A scalar register of a sequencer: 32 bits whose value only the running machine knows."""

from typing import Any, NoReturn

from omni_neuron.sim.errors import KernelError


class VirtualRegister:
    """A loop bound, a loop condition or an offset of an access pattern; nothing else can be made of it."""

    __slots__ = ("_value", "read_only")

    def __init__(self, value: int = 0, read_only: bool = False) -> None:
        self._value = _wrap(value)
        self.read_only = read_only

    @property
    def content(self) -> int:
        """What the running machine finds in it; for the simulator, not for kernels."""
        return self._value

    def set(self, value: int) -> None:
        if self.read_only:
            raise KernelError(
                "register", "the induction register of a loop is read-only: move it to another."
            )
        self._value = _wrap(value)

    def __bool__(self) -> bool:
        return self._value != 0

    def _refuse(self, *_: Any) -> NoReturn:
        raise KernelError(
            "register",
            "a register has no value while the kernel is traced: use it as a loop bound or as scalar_offset.",
        )

    __int__ = __index__ = __float__ = _refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __floordiv__ = __mod__ = _refuse
    __lt__ = __le__ = __gt__ = __ge__ = _refuse

    def __repr__(self) -> str:
        return "<register>"


def _wrap(value: int) -> int:
    return (int(value) + 2**31) % 2**32 - 2**31
