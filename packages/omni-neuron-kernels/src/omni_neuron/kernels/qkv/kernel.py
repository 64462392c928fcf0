"""The projection of tokens to queries, keys and values, with RMSNorm across ranks and RoPE.

Queries and keys are made with the weights stationary and the tokens moving, so that they come out d-major;
values the other way round, so that they come out token-major. Both take the tokens transposed: a block of
tokens is transposed once and stays in SBUF, while all weights stream past it. What the norm needs of other
heads and ranks arrives while the next columns are projected: until then a tile waits, rotated and in fp32,
for one factor per token.
"""

from typing import Any

from omni_neuron.kernels.nki import nki, nl
from omni_neuron.kernels.qkv.plan import groups
from omni_neuron.kernels.qkv.rows import Rows, reduce_sums, scale_rows, take_rows
from omni_neuron.kernels.qkv.setting import columns_of, make_setting
from omni_neuron.kernels.qkv.tables import load_angles, rotation_tables
from omni_neuron.kernels.qkv.tokens import Tokens, take_tokens
from omni_neuron.kernels.qkv.transposed import load_pieces, transpose_step
from omni_neuron.kernels.qkv.weights import project_step
from omni_neuron.kernels.tiles import broadcast_row

AHEAD = 2  # tiles of hidden that are transposed before the first product uses them
SETTLED = 0.4  # of the next phase: by then the sums of squares are there, and no product waits for them


@nki.jit
def qkv_kernel(
    x: Any,
    weight: Any,
    bias: Any,
    gamma_q: Any,
    gamma_k: Any,
    cos: Any,
    sin: Any,
    heads_q: int,
    heads_k: int,
    heads_v: int,
    eps: float,
    replica_groups: Any,
) -> Any:
    """x `[T, hidden]`, weight `[hidden, (heads_q + heads_k + heads_v) * D]` with columns q | k | v.

    bias like the columns or None; gamma_q, gamma_k `[heads * D]` or None for no norm; cos, sin fp32
    `[T, D / 2]` or None for no rotation; replica_groups the partition that a norm goes across, or None.
    Returns q and k `[heads, D, T]` and v `[heads, T, D]`, without those that have no head.
    """
    dim = weight.shape[1] // (heads_q + heads_k + heads_v)
    setting = make_setting(x, weight, (heads_q * dim, heads_k * dim, heads_v * dim), eps, replica_groups)
    load_pieces(setting, 1)
    sections, results = [], []
    for name, heads, first, gamma in (("q", heads_q, 0, gamma_q), ("k", heads_k, heads_q, gamma_k)):
        if heads > 0:
            out = nl.ndarray((heads, dim, x.shape[0]), x.dtype, buffer=nl.shared_hbm)
            width = heads * dim
            rows = out.reshape((width, x.shape[0]))
            shift = columns_of(setting, bias, first * dim, width)
            gain = columns_of(setting, gamma, 0, width)
            sections.append(Rows(name, first * dim, width, rows, shift, gain, dim // 2))
            results.append(out)
    if heads_v > 0:
        out = nl.ndarray((heads_v, x.shape[0], dim), x.dtype, buffer=nl.shared_hbm)
        column = (heads_q + heads_k) * dim
        shift = None if bias is None else broadcast_row(bias, column, heads_v * dim)
        sections.append(Tokens(column, heads_v, dim, out, shift))
        results.append(out)
    phases = []
    for section in sections:
        for first, count in groups(section.pieces(), section.at_once()):
            phases.append((section, first, count))
    setting.stream.plan(setting, phases)
    run(setting, phases, cos, sin)
    return tuple(results)


def run(setting: Any, phases: list[Any], cos: Any, sin: Any) -> None:
    """All phases of all blocks of this core, each with what the ones before and after it need done.

    The last phase of a block transposes the next block. Where it is also the first, the first block is
    transposed before it: rows and angles arrive in order, and the next block's take their place.
    """
    tables, coming = None, None
    angles = load_angles(setting, 0, cos, sin)
    steps = setting.steps
    alone = len(phases) == 1 and len(setting.blocks) > 1
    ahead = steps if alone else min(AHEAD, steps)
    for step in range(ahead):
        transpose_step(setting, 0, step)
    if alone:
        tables = rotation_tables(angles)
    waiting: list[Any] = []
    settled: list[Any] = []
    for block in range(len(setting.blocks)):
        for p in range(len(phases)):
            section, first, count = phases[p]
            last = p == len(phases) - 1 and block + 1 < len(setting.blocks)
            banks = section.banks(setting, block, first, count)
            for step in range(steps):
                if block == 0 and p == 0 and step + ahead < steps:
                    transpose_step(setting, 0, step + ahead)
                project_step(setting, section, block, step, banks)
                if last:
                    transpose_step(setting, block + 1, step)
                if last and step == 0:
                    angles = load_angles(setting, block + 1, cos, sin)
                if step == int(SETTLED * steps):
                    if block == 0 and p == 0 and not alone:
                        tables = rotation_tables(angles)
                    if last:
                        coming = rotation_tables(angles)
                    for sums in waiting:
                        settled.append(reduce_sums(setting, sums))
                    waiting = []
            if section.token_major():
                take_tokens(setting, section, block, first, count, banks)
            else:
                sums = take_rows(setting, section, block, first, count, banks, tables)
                if sums is not None:
                    waiting.append(sums)
            for rows in settled:
                scale_rows(setting, rows)
            settled = []
        tables = coming
    for sums in waiting:
        scale_rows(setting, reduce_sums(setting, sums))
