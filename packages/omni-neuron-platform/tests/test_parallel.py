from types import SimpleNamespace
from typing import Any

import pytest
import torch
from vllm.distributed.parallel_state import get_tp_group
from vllm_omni.diffusion.data import DiffusionParallelConfig
from vllm_omni.diffusion.distributed.parallel_state import get_cfg_group, get_sp_group

from omni_neuron.distributed.errors import LayoutError
from omni_neuron.distributed.layout import ParallelLayout
from omni_neuron.distributed.topology import instance
from omni_neuron.platform import parallel
from omni_neuron.platform.parallel import (
    check_cores,
    layout_of,
    parallel_context,
    place_groups,
    tp_reduce_dtype,
)
from omni_neuron.runtime.errors import InputError
from omni_neuron.runtime.mode import Mode, ModeKind


def _asked(model_config: dict[str, Any] | None = None, **degrees: int) -> Any:
    return SimpleNamespace(parallel_config=DiffusionParallelConfig(**degrees), model_config=model_config)


def test_the_layout_has_the_degrees_of_the_engines_configuration() -> None:
    asked = _asked(tensor_parallel_size=2, ring_degree=4, cfg_parallel_size=2)
    assert layout_of(asked) == ParallelLayout(tp=2, cp=4, cfg=2)


def test_context_parallelism_is_the_product_of_both_degrees() -> None:
    assert layout_of(_asked(ulysses_degree=2, ring_degree=3)) == ParallelLayout(cp=6, ulysses=2)


def test_a_placement_comes_from_the_models_configuration() -> None:
    layout = layout_of(_asked({"placement": "3,2,0-1"}, ulysses_degree=2, ring_degree=2))
    assert layout == ParallelLayout(cp=4, ulysses=2, placement=(3, 2, 0, 1))


@pytest.mark.parametrize("placement", ["0,1,2", "0-4", "0,1,2,4"])
def test_a_placement_that_is_no_permutation_is_refused(placement: str) -> None:
    with pytest.raises(InputError, match="placement"):
        layout_of(_asked({"placement": placement}, ring_degree=4))


EXPECTED = {
    "tp": [(3,), (1,), (0,), (2,)],
    "cp": [(3, 1, 0, 2)],
    "ulysses": [(3, 1), (0, 2)],
    "ring": [(3, 0), (1, 2)],
    "cfg": [(3,), (1,), (0,), (2,)],
}


@pytest.mark.parametrize("name", EXPECTED)
def test_a_placed_layout_replaces_the_engines_groups(four_ranks: list[dict[str, Any]], name: str) -> None:
    for rank, found in enumerate(four_ranks):
        (mine,) = [group for group in EXPECTED[name] if rank in group]
        assert found["context"][name] == (mine, mine.index(rank))


@pytest.mark.parametrize("name", ["cp", "ulysses", "ring"])
def test_its_partitions_are_registered(four_ranks: list[dict[str, Any]], name: str) -> None:
    for found in four_ranks:
        assert sorted(found["registered"][name]) == sorted(EXPECTED[name])


def test_gathers_follow_its_order(four_ranks: list[dict[str, Any]]) -> None:
    for found in four_ranks:
        assert found["gathered"] == [3, 1, 0, 2]


def test_another_layout_replaces_all_groups_and_leaves_none_of_the_old_ones(
    four_ranks: list[dict[str, Any]],
) -> None:
    expected: dict[str, list[tuple[int, ...]]] = {
        "tp": [(3, 1), (0, 2)],
        "cp": [(3,), (1,), (0,), (2,)],
        "cfg": [(3, 0), (1, 2)],
    }
    for rank, found in enumerate(four_ranks):
        for name, groups in expected.items():
            (mine,) = [group for group in groups if rank in group]
            assert found["other"][name] == (mine, mine.index(rank))
        assert found["live"][1] == found["live"][2]


def test_a_layout_without_placement_keeps_the_engines_groups(make_worker: Any) -> None:
    make_worker()
    before = (get_tp_group(), get_sp_group(), get_cfg_group())
    place_groups(_asked())
    assert all(a is b for a, b in zip((get_tp_group(), get_sp_group(), get_cfg_group()), before, strict=True))


@pytest.mark.parametrize(
    ("model_config", "travels"),
    [(None, False), ({}, False), ({"ring_attention": False}, False), ({"ring_attention": True}, True)],
)
def test_keys_and_values_travel_where_the_configuration_says_so(
    make_worker: Any, model_config: dict[str, Any] | None, travels: bool
) -> None:
    make_worker()
    assert parallel_context(model_config).ring_attention is travels


@pytest.mark.parametrize(
    ("cores", "routes"),
    [("0-7", True), ("8-15", True), ("4-7,12-15", False), ("0-5,8,9", False), ("56-63", True)],
)
def test_ranks_must_route_on_the_cores_that_are_visible(
    cores: str, routes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    topology, layout = instance("trn2.48xlarge"), ParallelLayout(tp=4, cp=2)
    check_cores(layout, topology)
    monkeypatch.setenv("NEURON_VISIBLE_DEVICES", cores)
    check_cores(layout, instance("cpu"))
    if routes:
        check_cores(layout, topology)
        return
    with pytest.raises(LayoutError, match=r"NEURON_VISIBLE_DEVICES is .* group .* cannot be built"):
        check_cores(layout, topology)


def test_the_context_has_the_live_groups(two_ranks: list[dict[str, Any]]) -> None:
    for rank, found in enumerate(two_ranks):
        assert found["context"]["cfg"] == ((0, 1), rank)
        for single in ("tp", "cp", "text_encoder"):
            assert found["context"][single] == ((rank,), 0)


def test_a_worker_registers_the_partition_of_its_live_groups(two_ranks: list[dict[str, Any]]) -> None:
    for found in two_ranks:
        assert found["registered"] == ((0, 1),)


@pytest.mark.parametrize(("name", "dtype"), [("float32", torch.float32), ("bfloat16", torch.bfloat16)])
def test_the_payload_of_sums_is_the_one_that_the_configuration_names(name: str, dtype: torch.dtype) -> None:
    assert tp_reduce_dtype({"tp_reduce_dtype": name}) == dtype


@pytest.mark.parametrize(
    ("kind", "dtype"), [(ModeKind.CPU, torch.float32), (ModeKind.HARDWARE, torch.bfloat16)]
)
def test_left_out_it_follows_the_machine(
    kind: ModeKind, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parallel, "detect_mode", lambda: Mode(kind, "a test"))
    assert tp_reduce_dtype(None) == dtype
    assert tp_reduce_dtype({"tp_reduce_dtype": None}) == dtype
