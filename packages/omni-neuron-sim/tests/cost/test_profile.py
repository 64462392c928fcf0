import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from omni_neuron.sim import KernelError, profile
from omni_neuron.sim.nki import isa as nisa
from omni_neuron.sim.nki import language as nl

A = np.ones((128, 128), np.float32)


def product(x: Any) -> Any:
    tile, narrow = nl.ndarray((128, 128), nl.float32), nl.ndarray((128, 128), nl.bfloat16)
    turned = nl.ndarray((128, 128), nl.bfloat16, buffer=nl.psum)
    psum = nl.ndarray((128, 128), nl.float32, buffer=nl.psum)
    out = nl.ndarray((128, 128), nl.float32, buffer=nl.shared_hbm)
    nisa.dma_copy(tile, x)
    nisa.tensor_copy(narrow, tile)
    nisa.nc_transpose(turned, narrow)
    nisa.tensor_copy(narrow, turned)
    nisa.nc_matmul(psum, narrow, narrow)
    nisa.tensor_copy(tile, psum)
    nisa.dma_copy(out, tile)
    return out


def test_sums_are_those_of_the_instructions() -> None:
    found = profile(product, A, target="trn2")
    np.testing.assert_array_equal(found.results[0], np.full((128, 128), 128.0))
    assert found.useful_flops == 2 * 128**3  # the transpose does not count
    assert found.dma_bytes == 2 * 65536
    assert found.pe_utilisation == pytest.approx(128 / 2.4e9 / found.makespan_s)
    assert found.psum[0].amount == 1
    assert found.sbuf[0].amount == 512 + 256
    path = found.critical_path()
    assert [s.event.opcode for s in path] == [
        "dma_copy", "tensor_copy", "nc_transpose", "tensor_copy", "nc_matmul", "tensor_copy", "dma_copy",
    ]  # fmt: skip
    assert found.makespan_s == pytest.approx(sum(s.finish_s - s.start_s for s in path))
    assert found.bottleneck == "dma"
    assert found.busy_share("tensor") == pytest.approx(256 / 2.4e9 / found.makespan_s)
    assert profile(product, A, target="trn2", useful_flops=7).useful_flops == 7


def test_the_table_names_what_matters() -> None:
    text = profile(product, A, target="trn2").table()
    for words in (
        "rank 0.0      tensor                 2           256",
        "bottleneck dma", "critical path of 7 instructions", "PE utilisation", "DMA 131,072 bytes",
        "SBUF peak 768 of 212,992 bytes per partition, PSUM 1 of 8 banks",
    ):  # fmt: skip
        assert words in text


def test_the_trace_has_a_row_per_engine_core_and_rank(tmp_path: Path) -> None:
    found = profile(product, A, ranks=2, lnc=2, target="trn2")
    found.write_perfetto(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    processes = [e["args"]["name"] for e in events if e["name"] == "process_name"]
    assert processes == [f"rank {r} core {c}" for r in range(2) for c in range(2)]
    work = [e for e in events if e["ph"] == "X"]
    assert len(work) == 4 * 7
    assert {e["name"] for e in work} == {"dma_copy", "tensor_copy", "nc_transpose", "nc_matmul"}
    assert all(Path(__file__).name in e["args"]["line"] for e in work)


def test_what_simulate_refuses_is_refused() -> None:
    with pytest.raises(KernelError, match="partition-start"):
        profile(lambda x: nisa.memset(nl.ndarray((128, 4), nl.float32)[100:128], 0.0), A)


def test_a_core_without_work_is_idle() -> None:
    def first_core_copies(x: Any) -> Any:
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        if nl.program_id(0) == 0:
            nisa.dma_copy(out, x)
        return out

    found = profile(first_core_copies, A, lnc=2, target="trn2")
    assert [(t.core, len(t.slots)) for t in found.timelines] == [(0, 1), (1, 0)]
    assert found.makespan_s > 0
    assert found.busy_share("dma", core=1) == 0
