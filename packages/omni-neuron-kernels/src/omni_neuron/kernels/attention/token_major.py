"""Flash attention for models that keep tokens before heads."""

from torch import Tensor

from omni_neuron.kernels.attention.flash_operator import flash_attention


def token_major_attention(query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
    """`flash_attention` with every tensor turned on the way in, and the result on the way out.

    Args:
        query: `[B, Sq, H, D]`, bfloat16 or float32.
        key, value: `[B, S, H, D]`, the dtype of query.
        scale: of the scores, above 0.

    Returns:
        `[B, Sq, H, D]` in the dtype of query.
    """
    batch, _, heads, dim = query.shape
    turned = [x.permute(0, 2, 3, 1).flatten(0, 1).contiguous() for x in (query, key)]  # [B H, D, S]
    rows = value.transpose(1, 2).flatten(0, 1).contiguous()  # [B H, S, D]
    attended = flash_attention(*turned, rows, None, scale)
    return attended.reshape(batch, heads, dim, -1).permute(0, 3, 1, 2)
