import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from omni_neuron.kernels.interpreter import interpret, profiled
from omni_neuron.kernels.limits import PARTITIONS
from omni_neuron.kernels.proof import worst_error
from omni_neuron.kernels.qkv import setting
from omni_neuron.kernels.qkv.plan import block_tokens, resident_bytes
from omni_neuron.kernels.qkv.spec import QKV, arguments
from omni_neuron.kernels.spec import KERNEL_BAR, Case

HEADS = st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 3)).filter(
    lambda heads: sum(heads) > 0
)


@settings(max_examples=30)
@given(
    block=st.sampled_from([32, 512]),  # tokens: up to five blocks, or one
    tokens=st.integers(2, 150),
    hidden=st.sampled_from([128, 640, 1152]),  # up to three loads of a token
    heads=HEADS,
    ranks=st.integers(1, 3),
    dim=st.sampled_from([64, 128]),
    dtype=st.sampled_from([torch.bfloat16, torch.float32]),
    norm=st.booleans(),
    rotation=st.booleans(),
    bias=st.booleans(),
    lnc=st.integers(1, 2),
)
@example(32, 65, 128, (1, 1, 1), 2, 64, torch.float32, True, True, True, 2)  # two blocks of each core
def test_any_shape(
    block: int,
    tokens: int,
    hidden: int,
    heads: tuple[int, int, int],
    ranks: int,
    dim: int,
    dtype: torch.dtype,
    norm: bool,
    rotation: bool,
    bias: bool,
    lnc: int,
) -> None:
    made = arguments(tokens, hidden, heads, ranks, dim, dtype, norm, rotation, bias)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(setting, "block_tokens", lambda *_: block)
        found = interpret(QKV, made, lnc)
    assert worst_error(found, QKV.twin(made)) <= KERNEL_BAR[dtype]


@pytest.mark.parametrize("lnc", [1, 2])
@pytest.mark.parametrize("heads", [(5, 0, 0), (0, 0, 4)])
def test_several_blocks_of_one_phase(heads: tuple[int, int, int], lnc: int) -> None:
    """The queries of cross attention at TP8: the next block is transposed beside the first product."""
    made = arguments(1030, 1280, heads)
    assert worst_error(interpret(QKV, made, lnc), QKV.twin(made)) <= KERNEL_BAR[torch.bfloat16]


@pytest.mark.parametrize("group", [((0, 2), (3, 1)), ((2, 0), (1, 3))])
def test_several_groups_of_one_world(group: tuple[tuple[int, ...], ...]) -> None:
    """Four ranks in two groups: each norm goes over its own."""
    made = [(*of[:-1], group) for of in arguments(40, 128, (2, 1, 1), 4)]
    found = interpret(QKV, made)
    for ranks in group:
        expected = QKV.twin([made[rank] for rank in ranks])
        assert worst_error([found[rank] for rank in ranks], expected) <= KERNEL_BAR[torch.bfloat16]


def test_the_norm_knows_every_rank() -> None:
    """Against the norm of the own heads alone, which a sum that is not exchanged would give."""
    made = [list(of) for of in arguments(20, 128, (2, 2, 1), 2)]
    made[1][1] = made[1][1] * 8
    ranks = [tuple(of) for of in made]
    alone = [QKV.twin([(*of[:-1], None)])[0] for of in ranks]
    assert worst_error(interpret(QKV, ranks), QKV.twin(ranks)) <= KERNEL_BAR[torch.bfloat16]
    assert worst_error(interpret(QKV, ranks), alone) > 0.5


@pytest.mark.parametrize(
    ("hidden", "heads", "dtype"),
    [
        (128, (40, 40, 40), torch.bfloat16),
        (384, (6, 6, 6), torch.float32),
        (1280, (0, 2, 2), torch.bfloat16),
    ],
)
def test_the_gate_counts_what_is_alive(hidden: int, heads: tuple[int, int, int], dtype: torch.dtype) -> None:
    """What SBUF holds at most is not above what decides about the size of a block."""
    widths = (heads[0] * PARTITIONS, heads[1] * PARTITIONS, heads[2] * PARTITIONS)
    size = dtype.itemsize
    tokens = block_tokens(hidden, widths, size)
    case = Case("a whole block", arguments(tokens, hidden, heads, dtype=dtype))
    peak = max(one.amount for one in profiled(QKV, case).sbuf)
    assert peak <= resident_bytes(tokens, hidden, widths, size)


def test_the_tensor_engine_is_busy() -> None:
    """TI2V-5B at TP4, two blocks: hardly anything is waited for but the first loads."""
    made = arguments(1024, 3072, (6, 6, 6))
    cost = profiled(QKV, Case("two blocks", made, 2 * 1024 * 3072 * 18 * PARTITIONS))
    assert cost.bottleneck == "tensor"
    assert cost.pe_utilisation >= 0.8
