"""Use one package where only it was installed: `python -I scripts/wheel_smoke.py omni-neuron-sim`."""

import sys
from importlib.metadata import entry_points
from importlib.util import find_spec


def runtime() -> None:
    from omni_neuron.runtime.mode import command_mode

    print(command_mode().reason)


def distributed() -> None:
    from omni_neuron.distributed.layout import ParallelLayout

    print(ParallelLayout(tp=2, cp=2, cfg=2).groups("cfg"))


def kernels() -> None:
    import torch

    from omni_neuron.kernels.catalogue import KERNELS
    from omni_neuron.kernels.rms_norm import rms_norm

    print(*KERNELS, rms_norm(torch.randn(16, 64), torch.ones(64), 1e-6).shape)


def sim() -> None:
    from omni_neuron.sim.machine import CHIPS

    print(*CHIPS)


def platform() -> None:
    from omni_neuron.runtime.envs import cpu_mode

    cpu_mode.set("1")
    doors = {"vllm.platform_plugins": "omni_neuron_cpu", "vllm_omni.platform_plugins": "neuron"}
    for group, name in doors.items():
        (point,) = entry_points(group=group, name=name)
        path = point.load()()
        if path is None:
            sys.exit(f"The plugin {name} of {group} is inactive in CPU mode.")
        print(path)


def wan22() -> None:
    for point in entry_points(group="omni_neuron.pipelines"):
        print(*point.load().PIPELINE_REGISTRY)


def command() -> None:
    from omni_neuron.cli.main import main

    main(["--version"])


CHECKS = {
    "omni-neuron-runtime": runtime,
    "omni-neuron-distributed": distributed,
    "omni-neuron-kernels": kernels,
    "omni-neuron-sim": sim,
    "omni-neuron-platform": platform,
    "omni-neuron-wan22": wan22,
    "omni-neuron": command,
}
WITH_ENGINE = ("omni-neuron-platform", "omni-neuron-wan22")

if __name__ == "__main__":
    package = sys.argv[1]
    if (find_spec("vllm") is not None) != (package in WITH_ENGINE):
        sys.exit(f"{package} must {'bring' if package in WITH_ENGINE else 'not bring'} vllm.")
    CHECKS[package]()
