"""Kernels pass arguments by position, so their order is part of the language (NKI 0.6)."""

import inspect

import pytest

from omni_neuron.sim.nki import collectives as ncc
from omni_neuron.sim.nki import isa as nisa

ORDER = """
dma_copy dst src priority oob_mode dge_mode engine
tensor_copy dst src engine
memset dst value engine
tensor_copy_predicated dst src predicate reverse_pred
nc_matmul dst stationary moving is_stationary_onezero is_moving_onezero is_transpose accumulate tile_position tile_size perf_mode
nc_matmul_mx dst stationary moving stationary_scale moving_scale tile_position tile_size accumulate
nc_transpose dst data engine
dma_transpose dst src axes priority dge_mode oob_mode
tensor_tensor dst data1 data2 op engine
tensor_scalar dst data op0 operand0 reverse0 op1 operand1 reverse1 engine
tensor_reduce dst op data axis negate keepdims
tensor_partition_reduce dst op data
tensor_scalar_cumulative dst src op0 op1 imm0 imm1 reduce_cmd
activation dst op data bias scale reduce_op reduce_res reduce_cmd
activation_reduce dst op data reduce_op reduce_res bias scale
activate2 dst op data imm0 imm1 op0 op1 relu_param reverse0 reverse1 reduce_op reduce_res reduce_cmd
iota dst pattern offset channel_multiplier
affine_select dst pattern channel_multiplier on_true_tile on_false_value cmp_op offset
local_gather dst src_buffer index num_elem_per_idx num_valid_indices
nc_n_gather dst data indices
bn_stats dst data
bn_aggr dst data
tensor_tensor_scan dst data0 data1 initial op0 op1 reverse0 reverse1
nc_stream_shuffle dst src shuffle_mask
exponential dst src max_value reduce_res reduce_cmd reduce_init
reciprocal dst data
max8 dst src
scalar_tensor_tensor dst data op0 operand0 op1 operand1 reverse0 reverse1
tensor_scalar_reduce dst data op0 operand0 reduce_op reduce_res reverse0 reduce_cmd reduce_init reduce_res_negate
core_barrier data cores engine
dma_compute dst srcs reduce_op scales unique_indices oob_mode
quantize_mx dst src dst_scale
range_select dst on_true_tile comp_op0 comp_op1 bound0 bound1 reduce_cmd reduce_res reduce_op range_start on_false_value
select_reduce dst predicate on_true on_false reduce_res reduce_cmd reduce_op reverse_pred
sendrecv src dst send_to_rank recv_from_rank pipe_id dma_engine
register_move dst src
register_load dst src
register_store dst src
nc_find_index8 dst data vals
nc_match_replace8 dst data vals imm dst_idx
topk val_dst idx_dst src n
all_reduce srcs dsts replica_group op priority
all_gather srcs dsts replica_group collective_dim priority
reduce_scatter srcs dsts replica_group collective_dim op priority
all_to_all srcs dsts replica_group collective_dim priority
collective_permute srcs dsts source_target_pairs priority
collective_permute_implicit srcs_by_channel dsts_by_channel replica_group channel_ids priority
collective_permute_implicit_reduce srcs0_by_channel srcs1_by_channel dsts_by_channel replica_group op channel_ids priority
"""  # noqa: E501
CASES = [line.split() for line in ORDER.strip().splitlines()]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_arguments_stand_in_the_documented_order(case: list[str]) -> None:
    name, *arguments = case
    function = getattr(nisa, name, None) or getattr(ncc, name)
    assert list(inspect.signature(function).parameters) == [*arguments, "name"]


def test_enums_have_the_documented_numbers() -> None:
    assert {e.name: int(e) for e in nisa.engine} == {
        "unknown": 0, "tensor": 1, "scalar": 2, "gpsimd": 3, "dma": 4, "vector": 5, "sync": 6,
    }  # fmt: skip
    assert [c.name for c in sorted(nisa.reduce_cmd)] == [
        "idle",
        "reset",
        "reduce",
        "reset_reduce",
        "load_reduce",
    ]
    assert nisa.vector_engine is nisa.engine.vector
    assert nisa.nc_version.gen2 < nisa.nc_version.gen3 < nisa.nc_version.gen4
