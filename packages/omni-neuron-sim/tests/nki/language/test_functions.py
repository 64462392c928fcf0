from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from omni_neuron.sim import KernelError, nki
from omni_neuron.sim.nki import isa as nisa
from omni_neuron.sim.nki import language as nl
from omni_neuron.sim.testing import on_tiles

RNG = np.random.default_rng(14)
A, B = RNG.uniform(0.5, 2, (2, 64, 32)).astype(np.float32)

FUNCTIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "add": (lambda a, b: nl.add(a, b), lambda a, b: a + b),
    "a number first": (lambda a, b: nl.subtract(3.0, a), lambda a, b: 3 - a),
    "a number second": (lambda a, b: nl.multiply(a, 2.0), lambda a, b: a * 2),
    "divide": (lambda a, b: nl.divide(a, b), lambda a, b: a / b),
    "negative": (lambda a, b: nl.negative(a), lambda a, b: -a),
    "exp": (lambda a, b: nl.exp(a), lambda a, b: np.exp(a)),
    "rsqrt": (lambda a, b: nl.rsqrt(a), lambda a, b: a**-0.5),
    "sin beyond pi": (lambda a, b: nl.sin(nl.multiply(a, 40.0)), lambda a, b: np.sin(a * 40)),
    "cos": (lambda a, b: nl.cos(a), lambda a, b: np.cos(a)),
    "softmax": (lambda a, b: nl.softmax(a, axis=-1), lambda a, b: np.exp(a) / np.exp(a).sum(-1,
    keepdims=True)), "rms_norm": (
        lambda a, b: nl.rms_norm(a, b, axis=1, n=32, epsilon=1e-3),
        lambda a, b: a * b / np.sqrt(np.square(a).mean(-1, keepdims=True) + 1e-3),
    ),
    "where": (lambda a, b: nl.where(nl.greater(a, b), a, 0.0), lambda a, b: np.where(a > b, a, 0)),
    "transpose twice": (lambda a, b: nl.transpose(nl.copy(nl.transpose(a))), lambda a, b: a),
    "broadcast": (lambda a, b: nl.broadcast_to(a[:, 0:1], (64, 32)), lambda a, b: np.broadcast_to(a[:, :1],
    (64, 32))),
}  # fmt: skip
REDUCED: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "sum": (lambda a: nl.sum(a, axis=1), lambda a: a.sum(1)),
    "max": (lambda a: nl.max(a, axis=[1], keepdims=True), lambda a: a.max(1)),
    "mean": (lambda a: nl.mean(a, axis=-1), lambda a: a.mean(1)),
    "var": (lambda a: nl.var(a, axis=1), lambda a: a.var(1)),
    "all": (lambda a: nl.all(nl.greater(a, 0.6), axis=1), lambda a: (a > 0.6).all(1)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_compute_what_they_say(name: str) -> None:
    function, expected = FUNCTIONS[name]
    found = on_tiles(
        lambda d, a, b: nisa.tensor_copy(d, function(a, b)), A, B, shape=(64, 32), dtype="float32"
    )
    np.testing.assert_allclose(
        found, expected(A.astype(np.float64), B.astype(np.float64)), rtol=1e-5, atol=1e-5
    )


@pytest.mark.parametrize("name", REDUCED)
def test_reductions_leave_one_column(name: str) -> None:
    function, expected = REDUCED[name]
    found = on_tiles(lambda d, a: nisa.tensor_copy(d, function(a)), A, shape=(64, 1), dtype="float32")
    np.testing.assert_allclose(found[:, 0], expected(A), rtol=1e-5)


def test_matmul_wants_the_transposed_operand() -> None:
    found = on_tiles(
        lambda d, a, b: nisa.tensor_copy(d, nl.matmul(a, b, transpose_x=True)),
        A,
        B,
        shape=(32, 32),
        dtype="float32",
    )
    np.testing.assert_allclose(found, A.T @ B, rtol=1e-5)
    with pytest.raises(KernelError, match="transpose_x=True"):
        on_tiles(lambda d, a, b: nl.matmul(a, b), A, B, shape=(32, 32), dtype="float32")


def test_operators_without_a_function_say_so() -> None:
    with pytest.raises(KernelError, match=r"nl.fmod is an operator of instructions, not a function"):
        on_tiles(lambda d, a: nl.fmod(a, a), A, shape=(64, 32), dtype="float32")


def test_names_of_older_versions_say_what_took_their_place() -> None:
    with pytest.raises(AttributeError, match=r"nki.language has no 'arange': use slices"):
        nl.arange  # noqa: B018
    with pytest.raises(AttributeError, match=r"nki.isa has no 'tensor_copy_dynamic_src': use tensor_copy"):
        nisa.tensor_copy_dynamic_src  # noqa: B018
    with pytest.raises(AttributeError, match=r"nki has no 'benchmark': use nki.simulator.profile"):
        nki.benchmark  # noqa: B018
    with pytest.raises(AttributeError, match=r"nki.isa has no 'nonsense'$"):
        nisa.nonsense  # noqa: B018


def test_elements_are_dropped_and_gathered() -> None:
    def body(dst: Any, a: Any) -> None:
        columns = nl.ndarray((64, 32), nl.uint32)
        nisa.iota(columns, [[-1, 32]], offset=31)
        nl.random_seed(1)
        nisa.tensor_copy(dst, nl.gather_flattened(nl.dropout(a, 0.5), columns))

    found = on_tiles(body, A, shape=(64, 32), dtype="float32")
    kept = found != 0
    np.testing.assert_array_equal(found[kept], A[:, ::-1][kept])
    assert abs(kept.mean() - 0.5) < 5 * 0.5 / np.sqrt(A.size)


def test_tensors_have_no_operators() -> None:
    with pytest.raises(KernelError, match=r"has no operators: use nisa.tensor_tensor"):
        on_tiles(lambda d, a: 2.0 * a, A, shape=(64, 32), dtype="float32")


def test_older_keywords_say_what_took_their_place() -> None:
    with pytest.raises(KernelError, match=r"argument 'mask'; use slices of the extents") as caught:
        on_tiles(lambda d, a: nisa.tensor_copy(d, a, mask=None), A, shape=(64, 32), dtype="float32")
    assert caught.value.rule == "operand"
