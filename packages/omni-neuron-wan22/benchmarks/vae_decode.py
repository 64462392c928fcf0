"""Decode time of our VAE beside diffusers', same weights, alternating in one process.

    python packages/omni-neuron-wan22/benchmarks/vae_decode.py
        [--dtype float32|bfloat16] [--base-dim 96] [--size 128] [--frames 9]

Defaults: the published 2.1 VAE (random weights) at 128x128 pixels and nine frames. Prints the minimum, median
and maximum of each, and the median ratio ours / diffusers.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import torch
from diffusers import AutoencoderKLWan

from omni_neuron.wan22.models.vae import NeuronAutoencoderKLWan
from omni_neuron.wan22.models.vae_config import WanVAEConfig


def seconds(decode: Callable[[], object]) -> float:
    start = time.perf_counter()
    decode()
    return time.perf_counter() - start


def describe(name: str, times: list[float]) -> str:
    return (
        f"{name:10s} min {min(times):.3f} s  median {statistics.median(times):.3f} s  max {max(times):.3f} s"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dtype", choices=["float32", "bfloat16"], default="float32")
    parser.add_argument("--base-dim", type=int, default=96)
    parser.add_argument("--size", type=int, default=128, help="height and width in pixels")
    parser.add_argument("--frames", type=int, default=9)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(0)
    dtype = getattr(torch, arguments.dtype)

    reference = AutoencoderKLWan(base_dim=arguments.base_dim).to(dtype).eval()
    ours = NeuronAutoencoderKLWan(WanVAEConfig(base_dim=arguments.base_dim), dtype)
    weights = reference.state_dict()
    ours.load_state_dict({key: weights[key] for key in ours.state_dict()})
    z = torch.randn(1, 16, (arguments.frames - 1) // 4 + 1, arguments.size // 8, arguments.size // 8).to(
        dtype
    )

    with torch.no_grad():
        contestants = {
            "ours": lambda: ours.decode(z),
            "diffusers": lambda: reference.decode(z, return_dict=False),
        }
        video, expected = ours.decode(z)[0].double(), reference.decode(z, return_dict=False)[0].double()
        times: dict[str, list[float]] = {name: [] for name in contestants}
        for _ in range(arguments.runs):
            for name, decode in contestants.items():
                times[name].append(seconds(decode))
    for name in contestants:
        print(describe(name, times[name]))
    ratios = [mine / theirs for mine, theirs in zip(times["ours"], times["diffusers"], strict=True)]
    print(f"ratio ours / diffusers: median {statistics.median(ratios):.3f}")
    print(f"relative L2 difference: {((video - expected).norm() / expected.norm()).item():.2e}")


if __name__ == "__main__":
    main()
