from pathlib import Path

from omni_neuron.runtime.devices import chip_count, device_nodes


def test_nodes_come_in_the_order_of_their_numbers(dev: Path) -> None:
    for number in (10, 2, 0):
        (dev / f"neuron{number}").touch()
    assert [node.name for node in device_nodes(dev)] == ["neuron0", "neuron2", "neuron10"]
    assert chip_count(dev) == 3


def test_other_nodes_do_not_count(dev: Path) -> None:
    for name in ("neuron", "neuron_ctl", "neuron0x", "null", "nvidia0"):
        (dev / name).touch()
    assert device_nodes(dev) == ()


def test_an_absent_folder_holds_no_device(tmp_path: Path) -> None:
    assert chip_count(tmp_path / "nowhere") == 0
