from dataclasses import FrozenInstanceError
from typing import get_args

import pytest

from omni_neuron.sim.machine import CHIPS, GIB, KIB, MIB, Chip, Generation


@pytest.fixture(params=get_args(Generation))
def chip(request: pytest.FixtureRequest) -> Chip:
    return CHIPS[request.param]


def test_totals_are_the_published_ones() -> None:
    """Stated on the same pages in another form than the fields they are computed from."""
    assert [CHIPS[name].core.memory.sbuf_bytes // MIB for name in ("trn1", "trn2", "trn3")] == [24, 28, 32]
    assert [CHIPS[name].core.dma.bytes_per_s / 1e9 for name in ("trn1", "trn2", "trn3")] == [272, 368, 528]
    assert [CHIPS[name].hbm_bytes_per_logical_core(2) // GIB for name in ("trn2", "trn3")] == [24, 36]
    assert CHIPS["trn1"].hbm_bytes_per_logical_core(1) == 16 * GIB
    assert 16 * CHIPS["trn2"].logical_cores(2) == 64
    assert 16 * CHIPS["trn2"].hbm_bytes == 1536 * GIB


def test_psum_is_two_mebibytes_in_banks_of_two_kibibytes(chip: Chip) -> None:
    memory = chip.core.memory
    assert memory.psum_bytes == 2 * MIB
    assert memory.psum_bank_bytes == 2 * KIB


def test_a_matmul_fills_whole_banks(chip: Chip) -> None:
    """v2 and v3 write one bank per matmul; v4 may write all of them."""
    tensor, memory = chip.core.tensor, chip.core.memory
    if chip.core.version < 4:
        assert tensor.moving_columns_fp32 * 4 == memory.psum_bank_bytes
        assert tensor.moving_columns_bf16 is None
    else:
        assert tensor.moving_columns_fp32 * 4 == memory.psum_partition_bytes
        assert tensor.moving_columns_bf16 == 2 * tensor.moving_columns_fp32
    assert tensor.rows == memory.partitions == tensor.columns


def test_peak_follows_from_the_clock(chip: Chip) -> None:
    """The array retires one bf16 column of the moving operand per cycle; fp32 runs at a quarter of it."""
    tensor = chip.core.tensor
    computed = 2 * tensor.rows * tensor.columns * tensor.clock_hz
    assert tensor.bf16_flops == pytest.approx(computed, rel=0.01)
    assert tensor.fp32_flops == pytest.approx(computed / 4, rel=0.02)


def test_cores_add_up_to_the_chip(chip: Chip) -> None:
    """The pages round their numbers; a chip is never off its cores by more than a tenth for bf16."""
    assert chip.cores * chip.core.tensor.bf16_flops == pytest.approx(chip.bf16_flops, rel=0.1)
    if chip.core.tensor.fp8_flops is not None:
        assert chip.cores * chip.core.tensor.fp8_flops == pytest.approx(chip.fp8_flops, rel=0.1)


def test_what_a_kernel_may_use_is_less_than_there_is(chip: Chip) -> None:
    usable = chip.core.memory.sbuf_usable_partition_bytes
    assert usable is None or usable <= chip.core.memory.sbuf_partition_bytes - 16 * KIB


def test_trn1_has_no_paired_cores() -> None:
    with pytest.raises(ValueError, match="logical core of 2"):
        CHIPS["trn1"].logical_cores(2)


def test_a_machine_does_not_change(chip: Chip) -> None:
    with pytest.raises(FrozenInstanceError):
        chip.cores = 1  # type: ignore[misc]
