import time
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest
import torch

from omni_neuron.sim import KernelError, PerRank, nki, simulate
from omni_neuron.sim.nki import isa as nisa
from omni_neuron.sim.nki import language as nl


@nki.jit
def doubled(x: Any, factor: float = 2.0) -> Any:
    tile = nl.load(x)
    nisa.tensor_scalar(tile, tile, nl.multiply, factor)
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(out, tile)
    return out


@pytest.mark.parametrize(
    "dtype",
    [torch.float32, torch.bfloat16, torch.float16, torch.int32, torch.uint8, torch.float8_e5m2, torch.bool],
)
def test_torch_tensors_come_back_as_they_went(dtype: torch.dtype) -> None:
    x = torch.ones(4, 6).to(dtype)
    found = doubled(x, 1.0)
    assert found.dtype == dtype
    assert torch.equal(found.float(), x.float())


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.uint32, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3])
def test_numpy_arrays_come_back_as_they_went(dtype: Any) -> None:
    found = doubled(np.ones((4, 6)).astype(dtype), factor=3.0)
    assert found.dtype == dtype
    assert (found.astype(np.float32) == 3).all()


def test_every_way_to_call_a_kernel() -> None:
    x = np.ones((2, 2), np.float32)
    for call in (doubled, doubled[1], doubled[2], nki.simulate(doubled), doubled.with_schedule([])):
        np.testing.assert_array_equal(call(x), 2 * x)
    np.testing.assert_array_equal(nki.simulator.simulate_kernel(doubled, (x,), {"factor": 4.0}, 2), 4 * x)
    np.testing.assert_array_equal(simulate(doubled, x, factor=5.0), 5 * x)
    np.testing.assert_array_equal(simulate(doubled[2], x, factor=5.0), 5 * x)
    with pytest.raises(ValueError, match="lnc is 1 and the kernel's grid 2"):
        simulate(doubled[2], x, lnc=1)
    assert nki.jit(mode="trace") is nki.jit
    with pytest.raises(ValueError, match="The grid is 3"):
        doubled[3]


def test_kernels_call_kernels() -> None:
    @nki.jit
    def outer(x: Any) -> Any:
        return doubled(doubled(x))

    np.testing.assert_array_equal(outer(np.ones((2, 2), np.float32)), np.full((2, 2), 4))


def test_arguments_that_are_written_are_copied_back() -> None:
    def kernel(x: Any, y: Any) -> None:
        nisa.dma_copy(y[0:1], x[1:2])

    for make in (lambda a: a, torch.from_numpy):
        x, y = make(np.full((2, 2), 7.0, np.float32)), make(np.zeros((2, 2), np.float32))
        simulate(kernel, x, y)
        assert np.asarray(y).tolist() == [[7, 7], [0, 0]]


@pytest.mark.parametrize("precise", [True, False])
def test_narrow_arguments_are_copied_back_in_their_own_dtype(precise: bool) -> None:
    def kernel(x: Any) -> None:
        tile = nl.load(x)
        nisa.tensor_scalar(tile, tile, nl.multiply, 1.0009765625)
        nisa.dma_copy(x, tile)

    x = torch.full((2, 2), 3.0, dtype=torch.bfloat16)
    simulate(kernel, x, precise=precise)
    assert x.dtype == torch.bfloat16
    assert (x == 3).all()
    y = np.full((2, 2), 3.0, ml_dtypes.bfloat16)
    simulate(kernel, y, precise=precise)
    assert (y.astype(np.float32) == 3).all()


def test_relaxed_mode_does_not_round() -> None:
    x = np.full((2, 2), 1.0009765625, np.float32)

    def kernel(a: Any) -> Any:
        narrow = nl.ndarray((2, 2), nl.bfloat16)
        nisa.dma_copy(narrow, a)
        out = nl.ndarray((2, 2), nl.float32, buffer=nl.shared_hbm)
        nisa.dma_copy(out, narrow)
        return out

    assert (simulate(kernel, x) == 1).all()
    np.testing.assert_array_equal(simulate(kernel, x, precise=False), x)

    def reinterpreting(a: Any) -> Any:
        return nl.ndarray((2, 2), nl.bfloat16).view(nl.int16)

    with pytest.raises(KernelError, match="run with precise=True"):
        simulate(reinterpreting, x, precise=False)


@pytest.mark.parametrize(
    ("argument", "words"),
    [
        ([1, 2], "is a list, which kernels do not take"),
        (np.zeros((2, 2)), "NKI has no dtype float64"),
        (torch.zeros(2, dtype=torch.int64), "NKI has no dtype int64"),
    ],
)  # fmt: skip
def test_arguments_that_kernels_do_not_take(argument: Any, words: str) -> None:
    with pytest.raises(KernelError, match=words) as caught:
        simulate(lambda x: None, argument)
    assert caught.value.rule == "arguments"


def test_results_are_in_shared_hbm() -> None:
    for buffer in (nl.hbm, nl.sbuf):
        with pytest.raises(KernelError, match=r"buffer=nl.shared_hbm") as caught:
            simulate(lambda b=buffer: nl.zeros((2, 2), nl.float32, buffer=b))
        assert caught.value.rule == "output-space"


def test_launches_that_cannot_be() -> None:
    x = np.zeros((2, 2), np.float32)
    with pytest.raises(ValueError, match="lnc is 2: trn1 has"):
        simulate(doubled, x, lnc=2, target="trn1")
    with pytest.raises(ValueError, match="target is 'trn9'"):
        simulate(doubled, x, target="trn9")
    with pytest.raises(ValueError, match="ranks is 0"):
        simulate(doubled, x, ranks=0)
    with pytest.raises(KernelError, match="2 values for 3 ranks"):
        simulate(doubled, PerRank([x, x]), ranks=3)


def test_a_mistake_in_python_stays_what_it_is() -> None:
    def kernel(x: Any) -> None:
        raise LookupError("mine")

    for ranks in (1, 2):
        with pytest.raises(LookupError, match="mine"):
            simulate(kernel, np.zeros((2, 2), np.float32), ranks=ranks)


def test_the_time_limit_ends_a_launch() -> None:
    start = time.monotonic()
    with pytest.raises(TimeoutError, match=r"longer than the 0.2 s"):
        simulate(lambda x: time.sleep(5.0), np.zeros((2, 2), np.float32), ranks=20, time_limit_s=0.2)
    assert time.monotonic() - start < 3.0


def test_the_environment_names_the_target(monkeypatch: pytest.MonkeyPatch) -> None:
    version = nki.jit(lambda: int(nisa.get_nc_version()))
    assert version() == 3
    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", "trn9")
    with pytest.raises(ValueError, match="NEURON_PLATFORM_TARGET_OVERRIDE is 'trn9': use one of"):
        version()
    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", "trn3")
    assert version() == 4
    assert simulate(version, target="gen3") == 3
    monkeypatch.setenv("NKI_PRECISE_FP", "2")
    with pytest.raises(ValueError, match="NKI_PRECISE_FP is '2'"):
        version()


def thirds_as_bf16(x: Any) -> Any:
    """A third of x, rounded as it is stored, once by an engine and once by the PE."""
    tile, narrow = nl.load(x), nl.ndarray(x.shape, nl.bfloat16)
    nisa.tensor_scalar(narrow, tile, nl.multiply, 1 / 3)
    sums, copied = nl.ndarray(x.shape, nl.float32, buffer=nl.psum), nl.ndarray(x.shape, nl.bfloat16)
    nisa.nc_matmul(sums, nl.shared_identity_matrix(x.shape[0], nl.float32), tile)
    nisa.activation(copied, nl.copy, sums, scale=1 / 3)
    out = nl.ndarray((2, *x.shape), nl.bfloat16, buffer=nl.shared_hbm)
    nisa.dma_copy(out[0], narrow)
    nisa.dma_copy(out[1], copied)
    return out


def test_stochastic_rounding_is_right_on_average_and_repeats_for_a_seed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    x = np.ones((128, 512), np.float32)
    nearest = simulate(thirds_as_bf16, x).astype(np.float64)
    first, again, other = (
        simulate(thirds_as_bf16, x, seed=s, stochastic_rounding=True).astype(np.float64) for s in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    gap = 2.0**-9  # of bf16 between 1/4 and 1/2
    assert set(np.unique(first)) == {nearest.min(), nearest.min() - gap}
    for part in first:
        assert abs(part.mean() - 1 / 3) < 5 * gap / 2 / part.size**0.5
    assert abs(nearest.mean() - 1 / 3) > gap / 4
    monkeypatch.setenv("NEURON_RT_STOCHASTIC_ROUNDING_EN", "1")
    np.testing.assert_array_equal(simulate(thirds_as_bf16, x, seed=1), first)
    np.testing.assert_array_equal(simulate(thirds_as_bf16, x, stochastic_rounding=False), nearest)
    assert (simulate(thirds_as_bf16, x, precise=False) == np.float32(1 / 3)).all()


def test_arrays_in_an_object_become_tensors() -> None:
    @dataclass(frozen=True)
    class Weights(nl.NKIObject):
        scale: Any
        factor: float

    def kernel(x: Any, weights: Weights) -> Any:
        tile, scale = nl.load(x), nl.load(weights.scale)
        nisa.tensor_tensor(tile, tile, scale, nl.multiply)
        nisa.tensor_scalar(tile, tile, nl.multiply, weights.factor)
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(out, tile)
        return out

    x = np.full((2, 2), 3.0, np.float32)
    assert (simulate(kernel, x, Weights(x, 2.0)) == 18).all()


def test_results_follow_arrays_inside_tuples() -> None:
    found = simulate(lambda pair: doubled(pair[0]), (torch.ones(2, 2), 3))
    assert torch.equal(found, torch.full((2, 2), 2.0))


class Pair(NamedTuple):
    first: Any
    second: Any


@dataclass(frozen=True)
class Layer(nl.NKIObject):
    weights: Any
    biases: Any = ()


def test_arrays_are_found_however_deep_they_lie() -> None:
    def kernel(x: Any, layer: Layer) -> Any:
        tiles = [nl.load(t) for t in (x, layer.weights.first, *layer.weights.second.biases)]
        for tile in tiles[1:]:
            nisa.tensor_tensor(tiles[0], tiles[0], tile, nl.add)
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(out, tiles[0])
        return out

    x = torch.ones(2, 2)
    found = simulate(kernel, x, Layer(Pair(2 * x, Layer(None, (3 * x, 4 * x)))))
    assert torch.equal(found, 10 * x)
    found = simulate(kernel, x, Layer(Pair(2 * x, Layer({"rank": [1, 2]}, [5 * x]))))
    assert torch.equal(found, 8 * x)
    with pytest.raises(KernelError, match=r"arg1 is a dict with arrays in it: pass an nl\.NKIObject"):
        simulate(kernel, x, {"weights": x})


def test_bound_arguments_are_arguments() -> None:
    def cores(x: Any, factor: float) -> Any:
        return doubled(x, factor * nl.num_programs(0))

    kernel, x = nki.jit(cores)[2], torch.ones(2, 2)
    for found in (
        nki.simulate(partial(kernel, x))(3.0),
        simulate(partial(kernel, factor=3.0), x),
        nki.simulate(partial(cores, x))[2](3.0),
        nki.simulator.simulate_kernel(partial(nki.jit(cores), x), (3.0,), lnc=2),
    ):
        assert torch.equal(found, torch.full((2, 2), 6.0))
