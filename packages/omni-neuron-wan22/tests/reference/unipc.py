"""diffusers' UniPC over given sigmas: ``python unipc.py CASES.json OUT.safetensors``.

Runs in its own process.  Each case has ``name``, ``sigmas`` (N + 1 numbers), ``seed`` and ``dtype`` of the
velocities; the file gets every sample under ``name``, fp32 ``[N, *shape]``.
"""

import json
import sys

import torch
from diffusers import UniPCMultistepScheduler
from safetensors.torch import save_file

SHAPE = (2, 4, 3, 6, 5)


def run(case: dict) -> torch.Tensor:
    sigmas = torch.tensor(case["sigmas"], dtype=torch.float32)
    scheduler = UniPCMultistepScheduler(
        use_flow_sigmas=True, prediction_type="flow_prediction", flow_shift=1.0
    )
    scheduler.set_timesteps(len(sigmas) - 1)
    scheduler.sigmas = sigmas
    scheduler.set_begin_index(0)
    generator = torch.Generator().manual_seed(case["seed"])
    sample = torch.randn(SHAPE, generator=generator)
    samples = []
    for timestep in scheduler.timesteps:
        velocity = torch.randn(SHAPE, generator=generator).to(getattr(torch, case["dtype"]))
        sample = scheduler.step(velocity, timestep, sample, return_dict=False)[0]
        samples.append(sample)
    return torch.stack(samples)


if __name__ == "__main__":
    with open(sys.argv[1]) as file:
        cases = json.load(file)
    save_file({case["name"]: run(case) for case in cases}, sys.argv[2])
