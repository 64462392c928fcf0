"""A request from the sizes that a person gives; a wrong size is refused with the nearest valid one."""

from __future__ import annotations

from omni_neuron.distributed.planner.geometry import Job, Model
from omni_neuron.runtime.errors import InputError

MAX_SIZE = 1 << 20  # far above any video, far below what a float can count


def make_job(
    model: Model,
    height: int | None = None,
    width: int | None = None,
    num_frames: int | None = None,
    steps: int | None = None,
) -> Job:
    """The job with two guidance branches; sizes left out are the model's own.

    Raises InputError for a size below 1 or above ``MAX_SIZE``, a height or width that DiT tokens do not tile,
    or a number of frames that latent frames do not end on.
    """
    sizes = {"height": height, "width": width, "num_frames": num_frames, "steps": steps}
    given = {name: getattr(model, name) if size is None else size for name, size in sizes.items()}
    for name, size in given.items():
        if size < 1:
            raise InputError(
                f"{name}={size} must be at least 1: the nearest valid choice is {_least(model, name)}."
            )
        if size > MAX_SIZE:
            raise InputError(f"{name}={size} must be at most {MAX_SIZE}: use a smaller one.")
    for name in ("height", "width"):
        multiple = model.pixel_multiple
        if given[name] % multiple:
            near = max(multiple, round(given[name] / multiple) * multiple)
            raise InputError(
                f"{name}={given[name]} must be a multiple of {multiple} for {model.name}: "
                f"the nearest valid choice is {near}."
            )
    scale = model.vae.temporal_scale
    if (given["num_frames"] - 1) % scale:
        near = round((given["num_frames"] - 1) / scale) * scale + 1
        raise InputError(
            f"num_frames={given['num_frames']} must be 1 more than a multiple of {scale} for {model.name}: "
            f"the nearest valid choice is {near}."
        )
    return Job(model, image=model.image_condition, **given)


def _least(model: Model, name: str) -> int:
    return model.pixel_multiple if name in ("height", "width") else 1
