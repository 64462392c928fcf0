"""One DiT forward: ours beside diffusers', same weights, same process, alternating.

    python packages/omni-neuron-wan22/benchmarks/dit_forward.py [--layers 4] [--grid 8x14x18] ...

Also printed: the floor, the matrix products and attentions of that forward and nothing else.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from collections.abc import Callable

import torch
from diffusers import WanTransformer3DModel as DiffusersTransformer
from torch.nn import functional

from omni_neuron.wan22.models.config import WanConfig
from omni_neuron.wan22.models.transformer import WanTransformer3DModel

CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}
FLOAT32_PARTS = ("time_embedder", "scale_shift_table", "norm2")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--heads", type=int, default=12)
    parser.add_argument("--head-dim", type=int, default=128)
    parser.add_argument("--ffn-dim", type=int, default=8960)
    parser.add_argument("--grid", default="8x14x18", help="tokens along time x height x width")
    parser.add_argument("--runs", type=int, default=7, help="timed forwards of each side")
    parser.add_argument("--dtypes", nargs="+", choices=DTYPES, default=list(DTYPES))
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--per-token", action="store_true", help="one timestep per token (TI2V)")
    parser.add_argument(
        "--clock", choices=CLOCKS, default="wall", help="cpu: for one thread on a busy machine"
    )
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.set_grad_enabled(False)
    grid = tuple(int(part) for part in args.grid.split("x"))
    config = WanConfig(
        num_layers=args.layers,
        num_attention_heads=args.heads,
        attention_head_dim=args.head_dim,
        ffn_dim=args.ffn_dim,
    )
    print(
        f"{args.layers} layers, {args.heads}x{args.head_dim} heads, ffn {args.ffn_dim}, "
        f"{math.prod(grid)} tokens, {args.threads} threads, {args.runs} runs"
    )
    for name in args.dtypes:
        compare(config, grid, DTYPES[name], name, args.runs, args.per_token, CLOCKS[args.clock])


def compare(
    config: WanConfig,
    grid: tuple[int, ...],
    dtype: torch.dtype,
    name: str,
    runs: int,
    per_token: bool,
    clock: Callable[[], float],
) -> None:
    reference, ours = build_pair(config, dtype)
    t, h, w = (size * patch for size, patch in zip(grid, config.patch_size, strict=True))
    latents = torch.randn(1, config.in_channels, t, h, w, dtype=dtype)
    text = torch.randn(1, 512, config.text_dim, dtype=dtype)
    timestep = torch.full((1, math.prod(grid)) if per_token else (1,), 500)
    contenders = {
        "diffusers": lambda: reference(latents, timestep, text, return_dict=False)[0],
        "ours": lambda: ours(latents, timestep, text),
        "floor": lambda: floor(config, math.prod(grid), dtype),
    }
    expected, actual = contenders["diffusers"](), contenders["ours"]()
    distance = float((actual.double() - expected.double()).norm() / expected.double().norm())
    times = alternate(contenders, runs, clock)
    print(f"{name}: relative L2 between the two {distance:.1e}")
    for label, values in times.items():
        low, middle, high = min(values), statistics.median(values), max(values)
        ratios = (
            f"median/diffusers {middle / statistics.median(times['diffusers']):.3f}  "
            f"min/floor {low / min(times['floor']):.3f}"
        )
        print(f"  {label:9s} min {low:7.3f}  median {middle:7.3f}  max {high:7.3f} s  {ratios}", flush=True)
    pairs = [mine / other for mine, other in zip(times["ours"], times["diffusers"], strict=True)]
    low, middle, high = min(pairs), statistics.median(pairs), max(pairs)
    print(f"  ours / diffusers, pair by pair: min {low:.3f}  median {middle:.3f}  max {high:.3f}")


def build_pair(config: WanConfig, dtype: torch.dtype) -> tuple[torch.nn.Module, torch.nn.Module]:
    torch.manual_seed(0)
    reference = DiffusersTransformer(**vars(config)).eval()
    for key, parameter in reference.named_parameters():
        keep = any(part in key for part in FLOAT32_PARTS)
        parameter.data = parameter.data.to(torch.float32 if keep else dtype)
    ours = WanTransformer3DModel(config, dtype=dtype).eval()
    state, key_map = reference.state_dict(), ours.key_map()
    for key, parameter in ours.named_parameters():
        parameter.copy_(torch.cat([state[part] for part in key_map.get(key, (key,))]))
    return reference, ours


def alternate(
    contenders: dict[str, Callable[[], torch.Tensor]], runs: int, clock: Callable[[], float]
) -> dict[str, list[float]]:
    """Seconds of each call; the order turns with every round, so that no one always follows the same."""
    times: dict[str, list[float]] = {label: [] for label in contenders}
    labels = list(contenders)
    for run in range(runs):
        for label in labels[run % len(labels) :] + labels[: run % len(labels)]:
            start = clock()
            contenders[label]()
            times[label].append(clock() - start)
    return times


_operands: dict[tuple[torch.dtype, tuple[int, ...]], torch.Tensor] = {}


def floor(config: WanConfig, tokens: int, dtype: torch.dtype) -> torch.Tensor:
    """The forward's matrix products and attentions, on operands that exist already."""
    dim, ffn, heads, head_dim = (
        config.inner_dim,
        config.ffn_dim,
        config.num_attention_heads,
        config.attention_head_dim,
    )

    def operand(*shape: int) -> torch.Tensor:
        key = (dtype, shape)
        if key not in _operands:
            _operands[key] = torch.randn(shape, dtype=dtype) * 0.02
        return _operands[key]

    def product(rows: int, inputs: int, outputs: int) -> torch.Tensor:
        return functional.linear(operand(rows, inputs), operand(outputs, inputs), operand(outputs))

    query = operand(1, tokens, heads, head_dim).transpose(1, 2)
    text = operand(1, 512, heads, head_dim).transpose(1, 2)
    product(512, config.text_dim, dim)
    product(512, dim, dim)
    for _ in range(config.num_layers):
        product(tokens, dim, 3 * dim)
        functional.scaled_dot_product_attention(query, query, query)
        product(tokens, dim, dim)
        product(tokens, dim, dim)
        product(512, dim, 2 * dim)
        functional.scaled_dot_product_attention(query, text, text)
        product(tokens, dim, dim)
        product(tokens, dim, ffn)
        product(tokens, ffn, dim)
    return product(tokens, dim, config.out_channels * config.patch_volume)


if __name__ == "__main__":
    main()
