from typing import Any

import pytest
import torch

from omni_neuron.kernels.attention import flash_attention
from omni_neuron.kernels.attention.flash_operator import SOURCE, _flash_attention, fits_flash_attention
from omni_neuron.kernels.attention.spec import FLASH_ATTENTION, attention_oracle, flash_case
from omni_neuron.kernels.attention.twin import attention_twin
from omni_neuron.kernels.interpreter import interpret
from omni_neuron.kernels.proof import relative_l2
from omni_neuron.kernels.spec import KERNEL_BAR
from omni_neuron.runtime.errors import InputError
from omni_neuron.runtime.testing import run_on_device

NAMES = ("query", "keys", "values", "key_lengths", "scale")


def arguments(**changes: Any) -> tuple[Any, ...]:
    named = dict(zip(NAMES, flash_case(2, 40, 70, 32, lengths=(70, 9)).ranks[0], strict=True))
    return tuple((named | changes).values())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_the_operator_runs_the_kernel(dtype: torch.dtype, launched: list[str]) -> None:
    case = flash_case(2, 40, 70, 32, dtype, lengths=(70, 9))
    found = flash_attention(*case.ranks[0])
    twin = attention_twin(*case.ranks[0])
    assert found.dtype == dtype
    assert relative_l2(found, twin) <= KERNEL_BAR[dtype]
    assert launched == [SOURCE]


def test_without_an_interpreter_the_twin_runs() -> None:
    assert torch.equal(flash_attention(*arguments()), attention_twin(*arguments()))


def test_what_does_not_fit_falls_back(launched: list[str]) -> None:
    case = flash_case(1, 5, 6, 130)
    assert not fits_flash_attention(*case.ranks[0])
    assert torch.equal(flash_attention(*case.ranks[0]), attention_twin(*case.ranks[0]))
    assert launched == []


def test_the_gate() -> None:
    query, keys, values, lengths, scale = arguments()
    assert fits_flash_attention(query, keys, values, lengths, scale)
    assert fits_flash_attention(query, keys, values, None, scale)
    for refused in (
        {"query": query.float()},
        {"query": query.double(), "keys": keys.double(), "values": values.double()},
        {"query": query[0]},
        {"query": query[:, :16]},
        {"query": query[:, :, :0]},
        {"keys": keys[:1]},
        {"values": values[:, :9]},
        {"values": values.mT},
        {"key_lengths": lengths.long()},
        {"key_lengths": lengths.repeat(2)},
        {"key_lengths": lengths[:0]},
        {"scale": 0.0},
        {"scale": -1.0},
        {"scale": float("inf")},
    ):
        assert not fits_flash_attention(*arguments(**refused)), refused


@pytest.mark.parametrize(
    ("heads", "queries", "keys", "entries", "ranks", "fits"),
    [
        (40, 32_760, 32_760, 1, 1, True),
        (512, 3328, 1, 0, 1, False),  # the bounds of all heads
        (40, 128, 75_600, 40, 1, False),  # the key lengths of all batch entries
        (40, 128, 131_072, 0, 4, False),  # the means of all ranks
        (1, 128, 131_072, 0, 4, True),
        (1, 128, 131_072, 0, 5, False),
    ],
)
def test_the_gate_knows_what_sbuf_holds(
    heads: int, queries: int, keys: int, entries: int, ranks: int, fits: bool
) -> None:
    query, key = (torch.empty(heads, 128, n, dtype=torch.bfloat16, device="meta") for n in (queries, keys))
    lengths = torch.empty(entries, dtype=torch.int32, device="meta") if entries else None
    assert fits_flash_attention(query, key, key.mT, lengths, 1.0, ranks) is fits


@pytest.mark.slow
@pytest.mark.parametrize(("heads", "queries", "keys"), [(512, 24 * 128, 1), (20, 2, 131_072)])
def test_the_largest_that_fit(heads: int, queries: int, keys: int) -> None:
    case = flash_case(heads, queries, keys, 4, lengths=(keys,))
    found = interpret(FLASH_ATTENTION, case.ranks)[0][0]
    assert bool(found.isfinite().all())


@pytest.mark.usefixtures("launched")
def test_the_operator_keeps_the_rules_of_torch() -> None:
    torch.library.opcheck(
        _flash_attention,
        arguments(),
        test_utils=("test_schema", "test_faketensor", "test_aot_dispatch_static"),
    )


@pytest.mark.hardware
def test_on_the_device_of_this_host() -> None:
    case = flash_case(2, 300, 700, lengths=(700, 512))
    found = run_on_device(flash_attention, *case.ranks[0])
    assert relative_l2(found, attention_oracle(*case.ranks[0])) <= FLASH_ATTENTION.twin_bar(torch.bfloat16)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("query", lambda x: x[0]),
        ("keys", lambda x: x[:1]),
        ("keys", lambda x: x[:, :16]),
        ("values", lambda x: x.mT),
        ("values", lambda x: x[:, :1]),
        ("key_lengths", lambda x: x[:0]),
        ("key_lengths", lambda x: x.repeat(2)),
        ("key_lengths", lambda x: x[None]),
    ],
)
def test_shapes_that_do_not_fit_are_the_callers_error(name: str, change: Any) -> None:
    """torch would broadcast some of them and attend to something else."""
    value = dict(zip(NAMES, arguments(), strict=True))[name]
    with pytest.raises(InputError, match=name):
        flash_attention(*arguments(**{name: change(value)}))
