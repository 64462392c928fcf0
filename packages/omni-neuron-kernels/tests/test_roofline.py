from dataclasses import replace

import pytest
import torch

from omni_neuron.kernels.catalogue import KERNELS
from omni_neuron.kernels.roofline import roofline

SPEC = KERNELS["rms_norm"]
CASE = SPEC.cases()[0]  # 300 x 1280 in bf16


@pytest.mark.parametrize("lnc", [1, 2])
def test_without_matrix_products_the_bytes_are_the_bound(lnc: int) -> None:
    found, cost = roofline(SPEC, CASE, lnc)
    x, weight, _ = CASE.ranks[0]
    # The weight goes to 128 partitions of each core.
    assert found.dma_bytes == cost.dma_bytes == 2 * x.nbytes + lnc * 128 * weight.nbytes
    assert found.bandwidth_bytes_per_s == lnc * 16 * 23e9  # 16 engines of 23 B/ns on trn2
    assert found.bound_s == pytest.approx(found.dma_bytes / found.bandwidth_bytes_per_s)
    assert found.bound_flops_per_s == 0
    assert found.pe_utilisation == 0
    assert 0 < found.reached == found.bound_s / found.makespan_s < 1


def test_the_bottleneck_is_that_of_the_core_that_ends_last() -> None:
    """Two of the three tiles are the first core's."""
    found, cost = roofline(SPEC, CASE, 2)
    first, second = (cost.busy_share(found.bottleneck, core) for core in range(2))
    assert found.bottleneck_share == first != second


def test_the_bound_is_the_smaller_of_peak_and_intensity_times_bandwidth() -> None:
    found, _ = roofline(SPEC, CASE)
    ridge = found.peak_flops_per_s / found.bandwidth_bytes_per_s  # FLOP/B where the two meet
    for intensity, bound in ((ridge / 2, found.peak_flops_per_s / 2), (2 * ridge, found.peak_flops_per_s)):
        case = replace(CASE, flops=round(intensity * found.dma_bytes))
        assert replace(found, case=case).bound_flops_per_s == pytest.approx(bound, rel=1e-6)
        assert replace(found, case=case).bound_s == pytest.approx(case.flops / bound, rel=1e-6)


@pytest.mark.parametrize(("dtype", "peak"), [(torch.bfloat16, 78.6e12), (torch.float32, 20e12)])
@pytest.mark.parametrize("lnc", [1, 2])
def test_the_peak_is_that_of_the_dtype_on_all_cores(dtype: torch.dtype, peak: float, lnc: int) -> None:
    case = next(c for c in SPEC.cases() if c.dtype == dtype)
    assert roofline(SPEC, case, lnc)[0].peak_flops_per_s == pytest.approx(lnc * peak, rel=1e-3)


def test_trn3_moves_bytes_faster() -> None:
    trn2, trn3 = (roofline(SPEC, CASE, target=target)[0] for target in ("trn2", "trn3"))
    assert trn3.makespan_s < trn2.makespan_s
    assert trn3.bandwidth_bytes_per_s == 16 * 33e9
