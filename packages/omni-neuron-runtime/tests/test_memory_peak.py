import time
from pathlib import Path

import pytest

from omni_neuron.runtime import memory_peak
from omni_neuron.runtime.memory_peak import AnonymousMemoryPeak, rss_anon_mib

BLOCK_MIB = 64


def test_the_peak_stays_after_the_memory_is_gone() -> None:
    peak = AnonymousMemoryPeak()
    before = peak.mib()
    block = bytearray(b"x" * (BLOCK_MIB << 20))
    time.sleep(4 * memory_peak.INTERVAL_S)
    del block
    assert peak.mib() >= before + BLOCK_MIB * 0.9
    assert rss_anon_mib() < before + BLOCK_MIB * 0.5
    assert BLOCK_MIB * 0.9 <= peak.rise_mib() <= peak.mib() - BLOCK_MIB * 0.1
    peak.stop()


def test_mapped_files_do_not_count(tmp_path: Path) -> None:
    import mmap

    file = tmp_path / "mapped"
    file.write_bytes(b"x" * (BLOCK_MIB << 20))
    before = rss_anon_mib()
    with file.open("rb") as handle, mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        assert sum(mapped[:: mmap.PAGESIZE]) > 0
        assert rss_anon_mib() < before + BLOCK_MIB * 0.5


def test_a_sampler_that_failed_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    peak = AnonymousMemoryPeak()

    def broken() -> float:
        raise OSError("no /proc")

    monkeypatch.setattr(memory_peak, "rss_anon_mib", broken)
    deadline = time.monotonic() + 5
    while peak._error is None and time.monotonic() < deadline:
        time.sleep(0.01)
    with pytest.raises(RuntimeError, match="no /proc"):
        peak.mib()
    peak.stop()
