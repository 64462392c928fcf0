import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omni_neuron.sim.nki import isa as nisa
from omni_neuron.sim.nki import language as nl
from omni_neuron.sim.numerics.alu import ARITHMETIC
from omni_neuron.sim.numerics.formats import FORMATS, encode, to_float32
from omni_neuron.sim.testing import on_tiles

BINARY = sorted(set(ARITHMETIC) - {"power", "abs_max", "abs_min"})
DTYPES = ("float32", "bfloat16", "float16", "int8", "int16", "float8_e4m3")
shapes = st.tuples(st.integers(1, 128), st.integers(1, 40))


def tile(seed: int, shape: tuple[int, ...], dtype: str = "float32") -> np.ndarray:
    values = np.random.default_rng(seed).integers(-9, 10, shape).astype(np.float32) / 2
    return encode(values, FORMATS[dtype])


def exact(array: np.ndarray) -> np.ndarray:
    return to_float32(array)


@settings(max_examples=40, deadline=None)
@given(shapes, st.sampled_from(BINARY), st.sampled_from(DTYPES), st.sampled_from(DTYPES), st.integers(0, 99))
def test_tensor_tensor_computes_in_fp32_and_rounds_once(
    shape: tuple[int, int], name: str, source: str, result: str, seed: int
) -> None:
    a, b = tile(seed, shape, source), tile(seed + 1, shape)
    found = on_tiles(
        lambda dst, x, y: nisa.tensor_tensor(dst, x, y, getattr(nl, name)), a, b, shape=shape, dtype=result
    )
    expected = encode(ARITHMETIC[name](exact(a), b), FORMATS[result])
    np.testing.assert_array_equal(exact(found), exact(expected))


@pytest.mark.parametrize("dtype", [np.int32, np.uint32])
def test_wide_integers_are_exact_on_gpsimd_and_not_on_vector(dtype: type) -> None:
    a, b = np.full((4, 4), 2**30 + 1, dtype), np.full((4, 4), 2, dtype)
    for engine, expected in ((nisa.engine.unknown, 2**30 + 3), (nisa.engine.vector, 2**30)):
        found = on_tiles(
            lambda dst, x, y, e=engine: nisa.tensor_tensor(dst, x, y, nl.add, engine=e),
            a,
            b,
            shape=(4, 4),
            dtype=dtype,
        )
        assert (found == expected).all()


def test_wide_integers_wrap_around() -> None:
    a = np.full((1, 1), 2**31 - 1, np.int32)
    found = on_tiles(lambda dst, x: nisa.tensor_tensor(dst, x, x, nl.add), a, shape=(1, 1), dtype=np.int32)
    assert found[0, 0] == -2


@settings(max_examples=30, deadline=None)
@given(
    st.integers(0, 99),
    st.sampled_from(["bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift"]),
)
def test_bitwise_operations_keep_bits(seed: int, name: str) -> None:
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 2**16, (8, 8)).astype(np.uint16)
    b = rng.integers(0, 16, (8, 8)).astype(np.uint16)
    found = on_tiles(
        lambda dst, x, y: nisa.tensor_tensor(dst, x, y, getattr(nl, name)), a, b, shape=(8, 8), dtype="uint16"
    )
    np.testing.assert_array_equal(found, getattr(np, name)(a, b))


@settings(max_examples=40, deadline=None)
@given(
    shapes,
    st.booleans(),
    st.booleans(),
    st.sampled_from(["subtract", "multiply", "maximum", "less"]),
    st.integers(0, 9),
)
def test_tensor_scalar_chains_two_operations(
    shape: tuple[int, int], first: bool, second: bool, name: str, seed: int
) -> None:
    x, column = tile(seed, shape), tile(seed + 1, (shape[0], 1))
    found = on_tiles(
        lambda dst, data, c: nisa.tensor_scalar(dst, data, nl.subtract, c, first, getattr(nl, name), 1.5,
        second),
        x, column, shape=shape, dtype="bfloat16",
    )  # fmt: skip
    inner = column - x if first else x - column
    scalar = np.full(shape, 1.5, np.float32)
    outer = ARITHMETIC[name](scalar, inner) if second else ARITHMETIC[name](inner, scalar)
    np.testing.assert_array_equal(exact(found), exact(encode(outer, FORMATS["bfloat16"])))


def test_tensor_scalar_with_unary_operations_and_integers() -> None:
    x = tile(3, (16, 8))
    found = on_tiles(
        lambda d, t: nisa.tensor_scalar(d, t, nl.abs, None, op1=nl.add, operand1=2.0),
        x,
        shape=(16, 8),
        dtype="float32",
    )
    np.testing.assert_array_equal(found, np.abs(x) + 2)
    bits = np.arange(16, dtype=np.int32).reshape(4, 4) - 8
    found = on_tiles(
        lambda d, t: nisa.tensor_scalar(d, t, nl.right_shift, 1, op1=nl.bitwise_and, operand1=7),
        bits, shape=(4, 4), dtype="int32",
    )  # fmt: skip
    np.testing.assert_array_equal(found, (bits.view(np.uint32) >> 1).view(np.int32) & 7)
    found = on_tiles(
        lambda d, t: nisa.tensor_scalar(d, t, nl.invert, None), bits, shape=(4, 4), dtype="int32"
    )
    np.testing.assert_array_equal(found, ~bits)


@settings(max_examples=30, deadline=None)
@given(shapes, st.booleans(), st.booleans(), st.integers(0, 9))
def test_scalar_tensor_tensor(shape: tuple[int, int], first: bool, second: bool, seed: int) -> None:
    x, y, column = tile(seed, shape), tile(seed + 1, shape), tile(seed + 2, (shape[0], 1))
    found = on_tiles(
        lambda d, a, b, c: nisa.scalar_tensor_tensor(d, a, nl.subtract, c, nl.subtract, b, first, second),
        x, y, column, shape=shape, dtype="float32",
    )  # fmt: skip
    inner = column - x if first else x - column
    np.testing.assert_array_equal(found, y - inner if second else inner - y)


def test_reciprocal_is_that_of_fp32() -> None:
    x = np.random.default_rng(0).uniform(0.1, 9, (128, 33)).astype(np.float32)
    found = on_tiles(lambda d, t: nisa.reciprocal(d, t), x, shape=x.shape, dtype="float32")
    np.testing.assert_array_equal(found, np.float32(1) / x)


def test_in_place_results_use_the_old_values() -> None:
    x = tile(1, (8, 16))

    def body(dst: nl.ndarray, t: nl.ndarray) -> None:
        nisa.tensor_tensor(t[:, 1:16], t[:, 0:15], t[:, 1:16], nl.add)
        nisa.tensor_copy(dst, t)

    found = on_tiles(body, x, shape=x.shape, dtype="float32")
    np.testing.assert_array_equal(found[:, 1:], x[:, :-1] + x[:, 1:])


def test_a_stride_of_zero_broadcasts() -> None:
    x, row = tile(1, (8, 4, 6)), tile(2, (8, 1, 6))
    found = on_tiles(
        lambda d, a, b: nisa.tensor_tensor(d, a, b.broadcast(1, 4), nl.multiply),
        x,
        row,
        shape=x.shape,
        dtype="float32",
    )
    np.testing.assert_array_equal(found, x * row)


def test_the_engine_is_chosen_by_operation_dtype_and_memory() -> None:
    chosen = []

    def body(dst: nl.ndarray, x: nl.ndarray) -> None:
        psum = nl.ndarray((4, 4), nl.int32, buffer=nl.psum)
        nisa.tensor_copy(psum, x)
        for operands, op in (
            ((x, x), nl.add),
            ((x, x), nl.bitwise_and),
            ((psum, x), nl.add),
            ((x, x), nl.power),
        ):
            chosen.append(nisa.tensor_tensor(dst, *operands, op).engine.name)

    on_tiles(body, np.ones((4, 4), np.int32), shape=(4, 4), dtype="int32")
    assert chosen == ["gpsimd", "vector", "vector", "gpsimd"]
