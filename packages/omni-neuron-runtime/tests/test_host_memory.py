from pathlib import Path

from omni_neuron.runtime.host_memory import host_memory_bytes


def test_the_smaller_of_machine_and_control_group(tmp_path: Path) -> None:
    limit = tmp_path / "memory.max"
    physical = host_memory_bytes(limit)
    total_kib = next(
        int(line.split()[1]) for line in Path("/proc/meminfo").read_text().splitlines() if "MemTotal" in line
    )
    assert physical == total_kib * 1024
    limit.write_text("max\n")
    assert host_memory_bytes(limit) == physical
    limit.write_text("1048576\n")
    assert host_memory_bytes(limit) == 1 << 20
    limit.write_text(f"{physical * 2}\n")
    assert host_memory_bytes(limit) == physical
