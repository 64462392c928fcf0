"""Operators: each is a constant that instructions take, and a function on tensors (`nl.add(a, b)`)."""

from collections.abc import Callable
from typing import Any

from omni_neuron.sim.errors import KernelError


class Operator:
    """`name` in nki.language; `alu` and `activation` name what the hardware does for it."""

    def __init__(self, name: str, alu: str | None = None, activation: str | None = None) -> None:
        self.name = name
        self.alu = alu or name
        self.activation = activation or name
        self.function: Callable[..., Any] | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.function is None:
            raise KernelError("operator", f"nl.{self.name} is an operator of instructions, not a function.")
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"nl.{self.name}"


_ALIASES = {"max": "maximum", "min": "minimum", "sum": "add", "prod": "multiply", "all": "logical_and"}
_NAMES = (
    "invert", "bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift", "add", "subtract",
    "multiply", "maximum", "minimum", "equal", "not_equal", "greater", "greater_equal", "less",
    "less_equal", "logical_and", "logical_or", "logical_xor", "power", "abs_max", "abs_min", "abs",
    "square", "relu", "rsqrt", "reciprocal", "average", "copy", "sigmoid", "prelu", "gelu", "gelu_dx",
    "gelu_apprx_tanh", "gelu_apprx_tanh_dx", "gelu_apprx_sigmoid", "gelu_apprx_sigmoid_dx", "silu",
    "silu_dx", "tanh", "softplus", "mish", "erf", "erf_dx", "exp", "log", "sin", "arctan", "sqrt", "sign",
    "bypass", "divide", "negative", "logical_not", "cos", "tan", "floor", "ceil", "trunc", "mod", "fmod",
    "max", "min", "sum", "prod", "all",
)  # fmt: skip

OPERATORS: dict[str, Operator] = {name: Operator(name, alu=_ALIASES.get(name)) for name in _NAMES}
