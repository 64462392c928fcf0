"""Residual sum, norm and modulation as the kernel computes them: float32 within, each result rounded once."""

from torch import Tensor


def adaln_twin(
    x: Tensor,
    update: Tensor | None,
    gate: Tensor | None,
    scale: Tensor,
    shift: Tensor,
    eps: float,
    unit_offset: bool,
) -> Tensor | tuple[Tensor, Tensor]:
    """x and update `[B, S, H]`; the others float32, `[B, H]` or of any shape that `_rows` lets broadcast.

    The norm without an update; the sum and its norm with one, which None as gate adds as it is.

    Layer norm: Ba, Kiros and Hinton 2016; its modulation: Peebles and Xie 2023, section 3.2. The norm is
    that of the rounded sum, which is what the next residual starts from. The variance is the mean square
    about the mean: mean(t^2) - mean(t)^2 cancels where the mean is large.
    """
    total = x
    if update is not None:
        change = update.float() if gate is None else update.float() * _rows(gate)
        total = (x.float() + change).to(x.dtype)
    wide = total.float()
    centred = wide - wide.mean(dim=-1, keepdim=True)
    inverse = (centred.square().mean(dim=-1, keepdim=True) + eps).rsqrt()
    gain = _rows(scale) + 1.0 if unit_offset else _rows(scale)
    out = (centred * gain * inverse + _rows(shift)).to(x.dtype)
    return out if update is None else (total, out)


def _rows(vector: Tensor) -> Tensor:
    """`[B, H]` beside `[B, S, H]`."""
    return vector[:, None] if vector.ndim == 2 else vector
