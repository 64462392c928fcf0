"""The projection to queries, keys and values for models: the kernel where it can run, its twin elsewhere."""

import torch
import torch.distributed._functional_collectives  # registers the operators' shape functions
from torch import Tensor

from omni_neuron.kernels.gate import can_run_kernel
from omni_neuron.kernels.limits import BANK_COLUMNS, DTYPES, PARTITIONS
from omni_neuron.kernels.operator import kernel_operator
from omni_neuron.kernels.qkv.plan import block_tokens
from omni_neuron.kernels.qkv.twin import Heads, qkv_twin
from omni_neuron.kernels.ranks import ALONE, launch_ranks
from omni_neuron.kernels.shapes import require_dims, require_shape
from omni_neuron.runtime.adapter import get_adapter
from omni_neuron.runtime.errors import InputError

SOURCE = "omni_neuron.kernels.qkv.kernel:qkv_kernel"
MAX_TOKENS = 131_072
MAX_WIDTH = PARTITIONS * PARTITIONS  # of q or k: their biases are turned at once
ROTATED_DIMS = (64, 128)  # half a head starts where an engine may start


def fits_qkv(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    gamma_q: Tensor | None,
    gamma_k: Tensor | None,
    cos: Tensor | None,
    sin: Tensor | None,
    heads: Heads,
) -> bool:
    """The kernel's gate, with the arguments of `qkv`.

    bf16 or fp32, x and weight of one dtype; 2 to 131,072 tokens; hidden a multiple of 128; q and k up to
    16,384 columns each; a head of up to 512 dimensions, with a rotation 64 or 128; and a block of at least
    128 tokens that fits in SBUF (hidden 5,120 with q, k and v of 5,120 columns each does).
    """
    dim = weight.shape[1] // sum(heads)
    widths = (heads[0] * dim, heads[1] * dim, heads[2] * dim)
    return (
        x.dtype in DTYPES
        and weight.dtype == x.dtype
        and x.shape[1] % PARTITIONS == 0
        and 2 <= x.shape[0] <= MAX_TOKENS
        and 0 < dim <= BANK_COLUMNS
        and max(widths[:2]) <= MAX_WIDTH
        and all(vector is None or vector.dtype in DTYPES for vector in (bias, gamma_q, gamma_k))
        and all(table is None or table.dtype == torch.float32 for table in (cos, sin))
        and (cos is None or dim in ROTATED_DIMS)
        and block_tokens(x.shape[1], widths, x.element_size()) > 0
    )


def _require(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    gamma_q: Tensor | None,
    gamma_k: Tensor | None,
    cos: Tensor | None,
    sin: Tensor | None,
    heads: Heads,
) -> None:
    require_dims("x", x, "[T, hidden]")
    require_dims("weight", weight, "[hidden, sum(heads) * D]")
    tokens, hidden = x.shape
    width = weight.shape[1]
    require_shape("weight", weight, (hidden, width))
    if len(heads) != 3 or min(heads) < 0 or sum(heads) == 0 or width % sum(heads):
        raise InputError(
            f"heads={tuple(heads)} must be three counts, not all 0, that divide the weight's {width} columns."
        )
    if (cos is None) != (sin is None):
        raise InputError("A rotation takes cos and sin: give both, or neither for no rotation.")
    dim = width // sum(heads)
    require_shape("bias", bias, (width,))
    require_shape("gamma_q", gamma_q, (heads[0] * dim,))
    require_shape("gamma_k", gamma_k, (heads[1] * dim,))
    for name, table in (("cos", cos), ("sin", sin)):
        require_shape(name, table, (tokens, dim // 2))


def _fake(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    gamma_q: Tensor | None,
    gamma_k: Tensor | None,
    cos: Tensor | None,
    sin: Tensor | None,
    heads: list[int],
    eps: float,
    group_name: str,
) -> list[Tensor]:
    dim = weight.shape[1] // sum(heads)
    shapes = [(count, dim, x.shape[0]) for count in heads[:2]] + [(heads[2], x.shape[0], dim)]
    return [x.new_empty(shape) for shape in shapes if shape[0] > 0]


@kernel_operator(_fake)
def _qkv(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    gamma_q: Tensor | None,
    gamma_k: Tensor | None,
    cos: Tensor | None,
    sin: Tensor | None,
    heads: list[int],
    eps: float,
    group_name: str,
) -> list[Tensor]:
    arguments = (x, weight, bias, gamma_q, gamma_k, cos, sin, *heads, eps)
    return list(launch_ranks(SOURCE, group_name, arguments))


def qkv(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    gamma_q: Tensor | None = None,
    gamma_k: Tensor | None = None,
    cos: Tensor | None = None,
    sin: Tensor | None = None,
    *,
    heads: Heads,
    eps: float = 1e-6,
    group_name: str = ALONE,
) -> list[Tensor]:
    """Queries, keys and values of tokens, with RMSNorm of q and of k over all heads of all ranks, and RoPE.

    Args:
        x: `[T, hidden]`, bfloat16 or float32.
        weight: `[hidden, sum(heads) * D]` in the dtype of x; columns of q, then k, then v, head by head.
        bias: `[sum(heads) * D]`, bfloat16 or float32, or None.
        gamma_q, gamma_k: `[heads * D]` gains of the norms, bfloat16 or float32; None for no norm.
        cos, sin: float32 `[T, D / 2]`, the angles of the pairs (i, i + D / 2) of every head; None for no
            rotation. Checkpoints that pair neighbours are brought to this order by `halves`.
        heads: of q, k and v on this rank; 0 for what is not wanted, so cross attention projects q from its
            tokens with `(n, 0, 0)` and k and v from the text with `(0, n, n)`.
        eps: added to the mean square.
        group_name: of the process group that shares the heads, registered with the adapter; `ALONE` for
            none. The norm's mean square goes over its ranks: their sums are added in float32.

    Returns:
        q and k `[heads, D, T]` and v `[heads, T, D]` in the dtype of x, without those that have no head.
        Products, bias, norm and rotation are float32; each result is rounded once. The kernel computes it
        where `can_run_kernel` and `fits_qkv` say so, its twin elsewhere.

    Raises:
        InputError: other shapes, heads that do not divide the weight, one of cos and sin alone.
    """
    _require(x, weight, bias, gamma_q, gamma_k, cos, sin, heads)
    if can_run_kernel(x) and fits_qkv(x, weight, bias, gamma_q, gamma_k, cos, sin, heads):
        return _qkv(x, weight, bias, gamma_q, gamma_k, cos, sin, list(heads), eps, group_name)
    ranks = _group_size(group_name)

    def reduce(sums: Tensor) -> Tensor:
        if ranks == 1:
            return sums
        started = torch.ops._c10d_functional.all_reduce(sums, "sum", group_name)
        total: Tensor = torch.ops._c10d_functional.wait_tensor(started)
        return total

    return qkv_twin(x, weight, bias, gamma_q, gamma_k, cos, sin, heads, eps, ranks, reduce)


@torch.compiler.assume_constant_result
def _group_size(group_name: str) -> int:
    return 1 if group_name == ALONE else len(get_adapter().replica_groups(group_name)[0])
