"""Shapes that a computation is defined for, whichever of its forms runs.

torch would broadcast a tensor of another shape and compute something else. Values without an agreement on
shapes are the caller's error; those that only a kernel cannot take go to the twin.
"""

from torch import Tensor

from omni_neuron.runtime.errors import InputError


def require_dims(name: str, tensor: Tensor, form: str) -> None:
    """InputError where a tensor has not as many dimensions as `form`, such as `[B, S, H]`, names."""
    if tensor.ndim != len(form.split(",")):
        raise InputError(f"{name} has the shape {tuple(tensor.shape)}: it must be {form}.")


def require_shape(name: str, tensor: Tensor | None, *allowed: tuple[int, ...]) -> None:
    """InputError where a tensor has none of the shapes; None has any."""
    if tensor is not None and tensor.shape not in allowed:
        wanted = " or ".join(str(tuple(shape)) for shape in allowed)
        raise InputError(
            f"{name} has the shape {tuple(tensor.shape)}: beside the others it must be {wanted}."
        )
