"""The projection to queries, keys and values in the catalogue."""

from collections.abc import Sequence

import torch
from torch import Tensor

from omni_neuron.kernels.dtypes import dtype_name
from omni_neuron.kernels.qkv.operator import MAX_TOKENS, MAX_WIDTH, SOURCE
from omni_neuron.kernels.qkv.twin import Heads, QkvArguments, qkv_twin_of_ranks
from omni_neuron.kernels.spec import Arguments, Case, KernelSpec, Results, counted

EPS = 1e-6
MODELS = {"A14B": (5120, 40), "TI2V-5B": (3072, 24)}  # hidden, heads of 128


def qkv_oracle(ranks: Sequence[Arguments]) -> list[Results]:
    """In float64: all ranks' heads side by side, normalised together, rotated as complex numbers."""
    of_ranks = [QkvArguments(*of) for of in ranks]
    one = of_ranks[0]
    results: list[list[Tensor]] = [[] for _ in ranks]
    for part, heads in enumerate(one.heads):
        if heads == 0:
            continue
        first = sum(one.heads[:part]) * one.dim
        columns = slice(first, first + heads * one.dim)
        rows = torch.cat([_product(of, columns) for of in of_ranks], dim=1)
        if part < 2:
            rows = _normalised(rows, [of.gammas[part] for of in of_ranks], one.eps)
            rows = _turned(rows, one.dim, one.cos, one.sin)
        for mine, piece in zip(results, rows.chunk(len(ranks), dim=1), strict=True):
            wide = piece.reshape(piece.shape[0], heads, one.dim)
            mine.append(wide.permute(1, 2, 0) if part < 2 else wide.transpose(0, 1))
    return [tuple(mine) for mine in results]


def _product(of: QkvArguments, columns: slice) -> Tensor:
    product = of.x.double() @ of.weight[:, columns].double()
    return product if of.bias is None else product + of.bias[columns].double()


def _normalised(rows: Tensor, gammas: Sequence[Tensor | None], eps: float) -> Tensor:
    given = [gamma.double() for gamma in gammas if gamma is not None]
    if not given:
        return rows
    return rows / (rows.square().mean(dim=1, keepdim=True) + eps).sqrt() * torch.cat(given)


def _turned(rows: Tensor, dim: int, cos: Tensor | None, sin: Tensor | None) -> Tensor:
    if cos is None or sin is None:
        return rows
    halves = rows.view(len(rows), -1, 2, dim // 2)
    turned = torch.complex(halves[:, :, 0], halves[:, :, 1]) * torch.complex(
        cos.double(), sin.double()
    ).unsqueeze(1)
    return torch.stack((turned.real, turned.imag), dim=2).flatten(1)


def arguments(
    tokens: int,
    hidden: int,
    heads: Heads,
    ranks: int = 1,
    dim: int = 128,
    dtype: torch.dtype = torch.bfloat16,
    norm: bool = True,
    rotation: bool = True,
    bias: bool = True,
    mean: float = 0.0,
    scale: float = 1.0,
) -> tuple[QkvArguments, ...]:
    """Arguments of the kernel for all ranks of one group; x has the given mean and is then scaled."""
    generator = torch.Generator().manual_seed(tokens * hidden + sum(heads))

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator)

    x = ((normal(tokens, hidden) + mean) * scale).to(dtype)
    angles = normal(tokens, dim // 2) * 3
    cos, sin = (angles.cos(), angles.sin()) if rotation else (None, None)
    group = (tuple(range(ranks)),) if ranks > 1 else None
    found = []
    for _ in range(ranks):
        width = sum(heads) * dim
        gamma_q, gamma_k = [(1 + 0.3 * normal(n * dim)).to(dtype) if norm and n else None for n in heads[:2]]
        shift = (0.3 * scale * normal(width)).to(dtype) if bias else None
        weight = (normal(hidden, width) / hidden**0.5).to(dtype)
        found.append(QkvArguments(x, weight, shift, gamma_q, gamma_k, cos, sin, *heads, EPS, group))
    return tuple(found)


def case(title: str, tokens: int, hidden: int, heads: Heads, ranks: int = 1, **options: object) -> Case:
    """`options` are those of `arguments`."""
    made = arguments(tokens, hidden, heads, ranks, **options)  # type: ignore[arg-type]
    x, weight = made[0].x, made[0].weight
    size = f"{counted(tokens, 'token')}, hidden {hidden}, width {weight.shape[1]}, {counted(ranks, 'rank')}"
    flops = 2 * tokens * weight.numel() * ranks
    return Case(f"{title}: {size}, {dtype_name(x.dtype)}", made, flops)


def _cases() -> tuple[Case, ...]:
    return (
        case("A14B at TP4", 70, 5120, (10, 10, 10)),
        case("A14B at TP4, short hidden", 150, 256, (10, 10, 10), 4),
        case("A14B at TP8, short hidden", 200, 640, (5, 5, 5), 2),
        case("TI2V-5B at TP4", 130, 3072, (6, 6, 6)),
        case("A14B at TP1, short hidden", 40, 256, (40, 40, 40)),
        case("two blocks of tokens", 530, 128, (2, 2, 2), 2),
        case("q of cross attention", 75, 640, (5, 0, 0), 2, rotation=False),
        case("k and v of a text", 100, 640, (0, 5, 5), 2, rotation=False),
        case(
            "neither norm nor rotation nor bias",
            33,
            128,
            (1, 2, 3),
            dim=96,
            norm=False,
            rotation=False,
            bias=False,
        ),
        case("odd heads of 64", 2, 256, (3, 3, 3), 2, dim=64),
        case("large mean", 65, 256, (2, 2, 2), 2, mean=30.0),
        case("tiny tokens", 65, 256, (2, 2, 2), 2, scale=1e-6),
        case("small", 137, 256, (2, 2, 2), 2, dtype=torch.float32),
    )


def _roofline() -> tuple[Case, ...]:
    found = []
    for model, tp, tokens in (("A14B", 4, 1024), ("A14B", 8, 1024), ("TI2V-5B", 4, 1024)):
        hidden, heads = MODELS[model]
        mine = heads // tp
        found.append(case(f"{model}, heads of TP{tp}", tokens, hidden, (mine, mine, mine)))
    return tuple(found)


QKV = KernelSpec(
    name="qkv",
    summary="Projection to q, k and v with RMSNorm across ranks and RoPE, of any fused width",
    source=SOURCE,
    limits=(
        "x and weight of one dtype, bf16 or fp32; bias and gains bf16 or fp32; cos and sin fp32",
        "hidden a multiple of 128",
        f"2 to {MAX_TOKENS:,} tokens",
        f"q and k up to {MAX_WIDTH:,} columns each",
        "heads of up to 512 dimensions, with a rotation 64 or 128",
        "a block of 128 tokens and its q and k before the norm fit SBUF",
    ),
    roundings=("output",),
    twin=qkv_twin_of_ranks,
    oracle=qkv_oracle,
    cases=_cases,
    roofline=_roofline,
)
