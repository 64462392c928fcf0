"""Torch operators that launch kernels."""

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any, ParamSpec, TypeVar

from torch import Tensor

from omni_neuron.runtime import envs
from omni_neuron.runtime.adapter import get_adapter

P = ParamSpec("P")
R = TypeVar("R")
NAMESPACE = "omni_neuron"


def kernel_operator(fake: Callable[P, R]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorate a function that launches a kernel: it becomes the operator `omni_neuron::<its name>`.

    `fake` has its signature and returns empty tensors of the result's shapes and dtypes. The operator always
    launches: whoever calls it has asked `can_run_kernel` and the kernel's own gate.
    """

    def define(function: Callable[P, R]) -> Callable[P, R]:
        name = f"{NAMESPACE}::{function.__name__.strip('_')}"
        operator: Callable[P, R] = get_adapter().nki_op(name, function, fake)
        return operator

    return define


@cache
def load(source: str) -> Any:
    """The kernel that `module:name` names; its module needs NKI and is imported now."""
    module, _, name = source.partition(":")
    return getattr(import_module(module), name)


def launch(source: str, *arguments: Any) -> Any:
    """Run the kernel `module:name` on one logical core, which has NEURON_LOGICAL_NC_CONFIG physical ones.

    NKI knows no strides: a view is copied, so that its elements lie as its shape says.
    """
    packed = [value.contiguous() if isinstance(value, Tensor) else value for value in arguments]
    return get_adapter().wrap_nki(load(source))[envs.logical_nc_config()](*packed)
