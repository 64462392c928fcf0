from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from omni_neuron.sim import KernelWarning
from omni_neuron.sim.nki import isa as nisa
from omni_neuron.sim.nki import language as nl
from omni_neuron.sim.testing import on_tiles

RNG = np.random.default_rng(7)


@settings(max_examples=25, deadline=None)
@given(
    st.integers(1, 128),
    st.integers(1, 40),
    st.booleans(),
    st.booleans(),
    st.sampled_from(["exp", "gelu", "silu"]),
)
def test_scale_and_bias_come_first(p: int, n: int, scale_tile: bool, bias_tile: bool, name: str) -> None:
    x = RNG.uniform(-2, 2, (p, n)).astype(np.float32)
    scale, bias = RNG.uniform(-1, 1, (2, p, 1)).astype(np.float32)
    found = on_tiles(
        lambda d, t, s, b: nisa.activation(
            d, getattr(nl, name), t, bias=b if bias_tile else 0.25, scale=s if scale_tile else 0.5
        ),
        x, scale, bias, shape=(p, n), dtype="float32",
    )  # fmt: skip
    argument = torch.from_numpy(x * (scale if scale_tile else 0.5) + (bias if bias_tile else 0.25)).double()
    exact = {"exp": torch.exp, "gelu": torch.nn.functional.gelu, "silu": torch.nn.functional.silu}[name](
        argument
    )
    np.testing.assert_allclose(found, exact.numpy(), rtol=2e-6, atol=2e-6)


def test_rows_of_results_are_summed_before_they_are_rounded() -> None:
    x = RNG.standard_normal((128, 200)).astype(np.float32)
    elements, row = on_tiles(
        lambda d, r, t: nisa.activation_reduce(d, nl.exp, t, nl.add, r),
        x, outputs=2, shape=[(128, 200), (128, 1)], dtype=["bfloat16", "float32"],
    )  # fmt: skip
    np.testing.assert_allclose(row[:, 0], np.exp(x.astype(np.float64)).sum(axis=1), rtol=1e-5)
    assert elements.dtype.name == "bfloat16"


def test_sums_chain_over_instructions_and_may_alias() -> None:
    x = RNG.standard_normal((64, 20)).astype(np.float32)

    def body(dst: Any, t: Any) -> None:
        scratch = nl.ndarray((64, 10), nl.float32)
        first, second = t[:, 0:10], t[:, 10:20]
        cmd = nisa.reduce_cmd
        nisa.activation(scratch, nl.square, first, reduce_op=nl.add, reduce_cmd=cmd.reset_reduce)
        nisa.activation(
            scratch, nl.square, second, reduce_op=nl.add, reduce_res=scratch[:, 0:1], reduce_cmd=cmd.reduce
        )
        nisa.tensor_copy(dst, scratch[:, 0:1])

    found = on_tiles(body, x, shape=(64, 1), dtype="float32")
    np.testing.assert_allclose(found[:, 0], np.square(x).sum(axis=1), rtol=1e-5)


def test_inputs_beyond_the_tables_are_warned_of() -> None:
    x = np.zeros((4, 4), np.float32)
    with pytest.warns(KernelWarning, match=r"16 inputs of nl.sqrt, such as 0, are outside"):
        on_tiles(lambda d, t: nisa.activation(d, nl.sqrt, t), x, shape=(4, 4), dtype="float32")


def test_trn3_has_exponential_and_activate2() -> None:
    x = RNG.standard_normal((32, 16)).astype(np.float32)
    top = x.max(axis=1, keepdims=True)
    elements, row = on_tiles(
        lambda d, r, t, m: nisa.exponential(d, t, m, r, nisa.reduce_cmd.reset_reduce),
        x, top, outputs=2, shape=[(32, 16), (32, 1)], dtype=["float32", "float32"], target="trn3",
    )  # fmt: skip
    np.testing.assert_allclose(elements, np.exp(x - top), rtol=1e-6)
    np.testing.assert_allclose(row[:, 0], np.exp(x - top).sum(axis=1), rtol=1e-5)
    found = on_tiles(
        lambda d, t, m: nisa.activate2(d, nl.prelu, t, 2.0, m, nl.multiply, nl.subtract, relu_param=0.1),
        x, top, shape=(32, 16), dtype="float32", target="trn3",
    )  # fmt: skip
    y = 2 * x - top
    np.testing.assert_allclose(found, np.where(y < 0, y * np.float32(0.1), y), rtol=1e-6)
