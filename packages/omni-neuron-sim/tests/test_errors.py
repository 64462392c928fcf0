import pickle
import re
from pathlib import Path

from omni_neuron.sim import errors
from omni_neuron.sim.errors import KernelError, SourceLine

RULE = re.compile(r'(?:KernelError|core\.error)\(\s*"([a-z-]+)"')


def test_an_error_says_where_which_rule_and_what() -> None:
    error = KernelError("shape", "3 is not 4.", SourceLine("kernel.py", 7), "tensor_copy", "rank 1 core 0")
    assert str(error) == "kernel.py:7: [shape] tensor_copy: 3 is not 4. (rank 1 core 0)"
    assert (error.rule, error.what, error.where.line, error.core) == (
        "shape",
        "3 is not 4.",
        7,
        "rank 1 core 0",
    )


def test_an_error_survives_the_way_between_processes() -> None:
    error = KernelError("shape", "3 is not 4.", SourceLine("kernel.py", 7), "tensor_copy", "rank 1 core 0")
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error)
    assert vars(again) == vars(error)


def test_the_line_is_the_callers() -> None:
    assert errors.kernel_line().file == __file__


def test_every_rule_is_documented() -> None:
    folder = Path(errors.__file__).parent
    used = {rule for file in folder.rglob("*.py") for rule in RULE.findall(file.read_text())}
    page = (Path(__file__).parents[3] / "docs" / "simulator.md").read_text()
    table = page[page.index("## Rules") : page.index("## What Python compiles")]
    documented = set(
        re.findall(
            r"`([a-z-]+)`", "\n".join(line.split("|")[1] for line in table.splitlines() if "|" in line)
        )
    )
    assert used - documented == set()
    assert documented - used <= {
        "rule",
        "sbuf-capacity",
        "psum-capacity",
        "psum-bank",
        "register",
        "what",
        "where",
        "core",
    }
