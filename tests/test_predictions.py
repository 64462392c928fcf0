"""The planner counts on what docs/kernels.md says of the kernels, and on no more."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
TABLE = ROOT / "packages/omni-neuron-distributed/src/omni_neuron/distributed/planner/data/kernels.toml"
ROW = re.compile(
    r"^(?P<kernel>\w+)  +(?P<case>.+?)  +(?P<lnc>[12])  +[\d.,]+  +(?P<pe>[\d.]+)%", re.MULTILINE
)


def predicted(kernel: str, *words: str) -> float:
    """The least PE utilisation of a kernel on two cores, over the cases whose title has all the words."""
    page = (ROOT / "docs/kernels.md").read_text()
    found = [
        float(row["pe"]) / 100
        for row in ROW.finditer(page)
        if row["kernel"] == kernel and row["lnc"] == "2" and all(word in row["case"] for word in words)
    ]
    assert found, f"docs/kernels.md has no row of {kernel} with {words}"
    return min(found)


def test_attention_is_the_ring_with_long_shards():
    long = predicted("ring_attention", "2 heads", "4096 keys")
    assert tomllib.loads(TABLE.read_text())["attention"] <= long


def test_linear_layers_are_the_worst_of_them_at_tp4():
    of_tp4 = (
        predicted("qkv", "A14B, heads of TP4"),
        predicted("output_projection", "10 heads"),
        predicted("mlp", "I=3456"),
    )
    assert tomllib.loads(TABLE.read_text())["linear"] <= min(of_tp4)
