from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import Tensor

from omni_neuron.distributed.testing import run_ranks
from omni_neuron.kernels import ranks
from omni_neuron.kernels.proof import relative_l2, worst_error
from omni_neuron.kernels.qkv import qkv
from omni_neuron.kernels.qkv.operator import SOURCE, fits_qkv
from omni_neuron.kernels.qkv.spec import QKV, arguments
from omni_neuron.kernels.qkv.twin import QkvArguments, qkv_twin
from omni_neuron.kernels.spec import KERNEL_BAR
from omni_neuron.runtime.adapter import get_adapter
from omni_neuron.runtime.errors import InputError
from omni_neuron.runtime.testing import run_on_device

HEADS = (2, 2, 1)


def meta(
    tokens: int,
    hidden: int,
    heads: tuple[int, int, int],
    dim: int = 128,
    dtype: torch.dtype = torch.bfloat16,
    rotation: bool = True,
) -> list[Tensor | None]:
    """Arguments of these shapes, without data."""

    def empty(*shape: int, of: torch.dtype = dtype) -> Tensor:
        return torch.empty(*shape, dtype=of, device="meta")

    width = sum(heads) * dim
    angles = [empty(tokens, dim // 2, of=torch.float32) if rotation else None for _ in range(2)]
    gammas = [empty(n * dim) if n else None for n in heads[:2]]
    return [empty(tokens, hidden), empty(hidden, width), empty(width), *gammas, *angles]


@pytest.mark.parametrize(
    ("tokens", "hidden", "heads"),
    [
        (4096, 5120, (10, 10, 10)),
        (75_600, 5120, (5, 5, 5)),
        (9450, 3072, (6, 6, 6)),
        (512, 5120, (40, 40, 40)),
        (512, 5120, (0, 10, 10)),
        (4096, 5120, (10, 0, 0)),
    ],
)
def test_the_gate_takes_the_models(tokens: int, hidden: int, heads: tuple[int, int, int]) -> None:
    assert fits_qkv(*meta(tokens, hidden, heads), heads)  # type: ignore[arg-type]


REFUSED: dict[str, tuple[list[Tensor | None], tuple[int, int, int]]] = {
    "hidden of 100": (meta(64, 100, (1, 1, 1)), (1, 1, 1)),
    "one token": (meta(1, 128, (1, 1, 1)), (1, 1, 1)),
    "float16": (meta(64, 128, (1, 1, 1), dtype=torch.float16), (1, 1, 1)),
    "a rotation of 32 dimensions": (meta(64, 128, (1, 1, 1), dim=32), (1, 1, 1)),
    "heads of 1,024": (meta(64, 128, (1, 1, 1), dim=1024, rotation=False), (1, 1, 1)),
    "too many columns": (meta(64, 128, (129, 1, 1)), (129, 1, 1)),
    "nothing fits": (meta(64, 65536, (40, 40, 40), dtype=torch.float32), (40, 40, 40)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_the_gate_refuses(name: str) -> None:
    values, heads = REFUSED[name]
    assert not fits_qkv(*values, heads)  # type: ignore[arg-type]


NAMES = ("x", "weight", "bias", "gamma_q", "gamma_k", "cos", "sin")


@pytest.mark.parametrize("position", range(7))
def test_the_gate_refuses_another_dtype(position: int) -> None:
    given = meta(64, 128, HEADS)
    assert fits_qkv(*given, HEADS)  # type: ignore[arg-type]
    given[position] = given[position].double()  # type: ignore[union-attr]
    assert not fits_qkv(*given, HEADS)  # type: ignore[arg-type]


@pytest.mark.parametrize("position", range(7))
@pytest.mark.parametrize("axis", [0, -1])
def test_another_shape_is_refused(position: int, axis: int) -> None:
    """torch would broadcast most of these."""
    given = meta(64, 128, HEADS)
    given[position] = given[position].narrow(axis, 0, 1)  # type: ignore[union-attr]
    named = r"x|weight|cos|heads=" if position < 2 else NAMES[position]
    with pytest.raises(InputError, match=f"^({named})"):
        qkv(*given, heads=HEADS)  # type: ignore[arg-type]


@pytest.mark.parametrize("heads", [(0, 0, 0), (2, 2, 2), (3, 3, -1), (3, 2)])
def test_heads_that_do_not_divide_the_weight_are_refused(heads: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match=f"^heads=.*{heads[0]}, {heads[1]}"):
        qkv(*meta(64, 128, HEADS), heads=heads)  # type: ignore[arg-type]


def test_half_a_rotation_is_refused() -> None:
    with pytest.raises(InputError, match="cos and sin"):
        qkv(*meta(64, 128, HEADS)[:6], heads=HEADS)  # type: ignore[arg-type]


def test_no_token_is_no_error(launched: list[str]) -> None:
    of = arguments(9, 128, HEADS)[0]
    q, k, v = call(of._replace(x=of.x[:0], cos=of.cos[:0], sin=of.sin[:0]))
    assert (q.shape, k.shape, v.shape) == ((2, 128, 0), (2, 128, 0), (1, 0, 128))
    assert launched == []


def call(of: QkvArguments, group_name: str = "") -> list[Tensor]:
    return qkv(*of[:7], heads=of.heads, eps=of.eps, group_name=group_name)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
@pytest.mark.parametrize("heads", [HEADS, (2, 0, 0), (0, 1, 3)])
def test_the_operator_is_the_twin(
    launched: list[str], dtype: torch.dtype, heads: tuple[int, int, int]
) -> None:
    made = arguments(50, 256, heads, dtype=dtype)
    assert worst_error([tuple(call(made[0]))], QKV.twin(made)) <= KERNEL_BAR[dtype]
    assert launched == [SOURCE]


def test_without_a_kernel_the_twin_answers(launched: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NKI_SIMULATOR", "0")
    of = arguments(9, 128, HEADS)[0]
    for found, expected in zip(call(of), qkv_twin(*of[:7], of.heads, of.eps), strict=True):
        assert torch.equal(found, expected)
    assert launched == []


def test_what_does_not_fit_goes_to_the_twin(launched: list[str]) -> None:
    made = arguments(9, 96, HEADS, dim=16)
    for found, expected in zip(call(made[0]), QKV.twin(made)[0], strict=True):
        assert torch.equal(found, expected)
    assert launched == []


def on_a_rank(rank: int, arguments_of: list[Any]) -> tuple[tuple[Tensor, ...], list[str]]:
    """The results, and the sources that were launched in this process."""
    name = dist.group.WORLD.group_name  # type: ignore[union-attr]
    get_adapter().register_replica_groups(name, [range(len(arguments_of))])
    launched: list[str] = []
    load = ranks.load

    def recorded(source: str) -> Any:
        launched.append(source)
        return load(source)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranks, "load", recorded)
        found = tuple(call(arguments_of[rank], name))
    return found, launched


@pytest.mark.parametrize(("simulator", "lnc"), [("0", "1"), ("1", "1"), ("1", "2")])
def test_two_processes_share_one_norm(monkeypatch: pytest.MonkeyPatch, simulator: str, lnc: str) -> None:
    monkeypatch.setenv("VLLM_NEURON_CPU_MODE", "1")
    monkeypatch.setenv("NKI_SIMULATOR", simulator)
    monkeypatch.setenv("NEURON_LOGICAL_NC_CONFIG", lnc)
    made = arguments(20, 128, HEADS, 2)
    found, launched = zip(*run_ranks(2, on_a_rank, list(made)), strict=True)
    assert launched == ([SOURCE] if simulator == "1" else [],) * 2
    assert worst_error(found, QKV.twin(made)) <= KERNEL_BAR[torch.bfloat16]


def test_the_operator_obeys_torch(launched: list[str]) -> None:
    of = arguments(8, 128, HEADS)[0]
    checks = ("test_schema", "test_faketensor")
    operator = torch.ops.omni_neuron.qkv.default
    torch.library.opcheck(operator, (*of[:7], list(of.heads), of.eps, ""), test_utils=checks)
    assert set(launched) == {SOURCE}


@pytest.mark.parametrize("simulator", ["0", "1"])
def test_one_graph(launched: list[str], monkeypatch: pytest.MonkeyPatch, simulator: str) -> None:
    monkeypatch.setenv("NKI_SIMULATOR", simulator)
    of = arguments(8, 128, HEADS)[0]
    compiled = torch.compile(
        lambda *tensors: call(QkvArguments(*tensors, *of[7:])), backend="aot_eager", fullgraph=True
    )
    for found, expected in zip(compiled(*of[:7]), call(of), strict=True):
        assert torch.equal(found, expected)
    assert launched == ([SOURCE] * 2 if simulator == "1" else [])


@pytest.mark.hardware
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_against_float64(dtype: torch.dtype) -> None:
    made = arguments(70, 256, HEADS, dtype=dtype)
    of = made[0]
    found = run_on_device(qkv, *of[:7], heads=of.heads, eps=of.eps)
    for one, expected in zip(found, QKV.oracle(made)[0], strict=True):
        assert one.dtype == dtype
        assert relative_l2(one, expected) <= QKV.twin_bar(dtype)
