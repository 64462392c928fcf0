"""Runs in two processes: a worker each, guidance over two ranks by our mixin and by the stock one."""

from __future__ import annotations

from typing import Any

import torch

SHAPE = (1, 4, 2, 3, 3)
SCALE = 3.3  # no bfloat16


def _prediction(branch: str, parts: int = 1) -> Any:
    """What a model would predict for a branch: a tensor, or a tuple of them; `parts` 0 is a tuple of one."""
    generator = torch.Generator().manual_seed({"positive": 1, "negative": 2}[branch])
    made = tuple(torch.randn(SHAPE, generator=generator) for _ in range(max(parts, 1)))
    return made if parts != 1 else made[0]


def _pipelines() -> tuple[type, type]:
    from vllm_omni.diffusion.distributed.cfg_parallel import CFGParallelMixin

    from omni_neuron.platform.cfg_parallel import NeuronCFGParallelMixin

    class Ours(NeuronCFGParallelMixin):
        calls: list[str]

        def predict_noise(self, branch: str, parts: int = 1) -> Any:
            self.calls.append(branch)
            return _prediction(branch, parts)

    class Stock(CFGParallelMixin):
        def predict_noise(self, branch: str, parts: int = 1) -> Any:
            return _prediction(branch, parts)

    return Ours, Stock


def _with_own_combination(pipeline: type) -> type:
    class Own(pipeline):  # type: ignore[misc]
        def combine_cfg_noise(
            self, positive: Any, negative: Any, scale: float, normalize: bool = False, kwargs: Any = None
        ) -> Any:
            return positive[0] - scale * negative[0] + (kwargs or {}).get("offset", 0.0)

    return Own


def _in_bfloat16(pipeline: type) -> type:
    class Narrow(pipeline):  # type: ignore[misc]
        def predict_noise(self, branch: str, parts: int = 1) -> Any:
            return super().predict_noise(branch, parts).bfloat16()

    return Narrow


def _compiled(pipeline: type) -> type:
    class Compiled(pipeline):  # type: ignore[misc]
        gather_guidance = staticmethod(
            torch.compile(pipeline.gather_guidance, backend="aot_eager", fullgraph=True, dynamic=False)
        )

    return Compiled


def _loaded(rank: int) -> torch.nn.Module:
    """What a worker may have loaded: one MiB of weights for rank 0, two for rank 1."""
    pipeline = torch.nn.Linear(512, 512 * (rank + 1), bias=False)
    pipeline.latents_sha256, pipeline.load_rise_mib = f"digest {rank}", 10.0 + rank  # type: ignore[assignment]
    return pipeline


CASES: dict[str, tuple[dict[str, Any], int]] = {
    "plain": ({}, 1),
    "several outputs": ({}, 2),
    "tuple of one": ({}, 0),
    "no guidance": ({"do_true_cfg": False}, 1),
    "normalised": ({"cfg_normalize": True}, 1),
    "sliced": ({"output_slice": 2}, 1),
}


def placed_groups(rank: int, placement: str) -> dict[str, Any]:
    """What a worker knows about its groups after they were placed, and after they were for another layout."""
    import torch.distributed as dist
    from vllm_omni.diffusion.data import OmniDiffusionConfig

    from omni_neuron.distributed.collectives import all_gather
    from omni_neuron.distributed.layout import ParallelLayout
    from omni_neuron.platform.parallel import parallel_context
    from omni_neuron.platform.placed_groups import replace_groups
    from omni_neuron.platform.worker import NeuronDiffusionWorker
    from omni_neuron.runtime.adapter import get_adapter

    config = OmniDiffusionConfig(
        model=None,
        model_class_name="WanPipeline",
        dtype="float32",
        num_gpus=4,
        parallel_config={"ulysses_degree": 2, "ring_degree": 2},
        model_config={"placement": placement},
    )
    NeuronDiffusionWorker(rank, rank, config, skip_load_model=True)
    context = parallel_context()
    groups = {name: getattr(context, name) for name in ("tp", "cp", "ulysses", "ring", "cfg")}
    found = {
        "context": {name: (group.ranks, group.rank_in_group) for name, group in groups.items()},
        "registered": {
            name: get_adapter().replica_groups(group.group_name)
            for name, group in groups.items()
            if group.size > 1
        },
        "gathered": all_gather(torch.tensor([rank]), context.cp, 0).tolist(),
    }
    live = [set(dist.distributed_c10d._world.pg_names.values())]
    for _ in range(2):
        replace_groups(ParallelLayout(tp=2, cfg=2, placement=[int(index) for index in placement.split(",")]))
        live.append(set(dist.distributed_c10d._world.pg_names.values()))
    other = parallel_context()
    found["other"] = {
        name: (getattr(other, name).ranks, getattr(other, name).rank_in_group) for name in ("tp", "cp", "cfg")
    }
    found["live"] = [len(names) for names in live]
    return found


def both_branches(rank: int) -> dict[str, Any]:
    """Every case by both mixins, and what the worker knows about its groups."""
    from vllm_omni.diffusion.data import OmniDiffusionConfig
    from vllm_omni.diffusion.distributed.parallel_state import get_cfg_group

    from omni_neuron.platform.parallel import parallel_context
    from omni_neuron.platform.worker import NeuronDiffusionWorker
    from omni_neuron.runtime.adapter import get_adapter

    config = OmniDiffusionConfig(
        model=None,
        model_class_name="WanPipeline",
        dtype="float32",
        num_gpus=2,
        parallel_config={"cfg_parallel_size": 2},
    )
    worker = NeuronDiffusionWorker(rank, rank, config, skip_load_model=True)
    context = parallel_context()
    ours_class, stock_class = _pipelines()
    outcomes = {}
    pairs = {name: (ours_class, stock_class, *case) for name, case in CASES.items()}
    pairs["compiled"] = (_compiled(ours_class), stock_class, {}, 1)
    pairs["bfloat16"] = (_in_bfloat16(ours_class), _in_bfloat16(stock_class), {}, 1)
    own = (_with_own_combination(ours_class), _with_own_combination(stock_class))
    pairs["own combination"] = (*own, {}, 1)
    pairs["own combination with context"] = (*own, {"kwargs": {"offset": 2.0}}, 1)
    for name, (ours_type, stock_type, options, parts) in pairs.items():
        ours, stock = ours_type(), stock_type()
        ours.cfg_group, ours.calls = context.cfg, []
        arguments: dict[str, Any] = {
            "do_true_cfg": True,
            "true_cfg_scale": SCALE,
            "positive_kwargs": {"branch": "positive", "parts": parts},
            "negative_kwargs": {"branch": "negative", "parts": parts},
            "cfg_normalize": False,
            **options,
        }
        result = ours.predict_noise_maybe_with_cfg(**arguments)
        outcomes[name] = (result, stock.predict_noise_maybe_with_cfg(**arguments), ours.calls)
    name = get_cfg_group().device_group.group_name
    worker.model_runner.pipeline = _loaded(rank)
    return {
        "outcomes": outcomes,
        "registered": get_adapter().replica_groups(name),
        "context": {
            dimension: (getattr(context, dimension).ranks, getattr(context, dimension).rank_in_group)
            for dimension in ("tp", "cp", "cfg", "text_encoder")
        },
        "world_size_for_vllm": worker.vllm_config.parallel_config.world_size_across_dp,
        "reports": worker.rank_reports(),
    }
