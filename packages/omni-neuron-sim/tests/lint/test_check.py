# ruff: noqa - what is here is wrong on purpose
import functools
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Any, Optional

import numpy as np
import pytest

from omni_neuron.sim import KernelError, nki
from omni_neuron.sim.lint import check, lint
from omni_neuron.sim.nki import collectives as ncc
from omni_neuron.sim.nki import isa as nisa
from omni_neuron.sim.nki import language as nl


class Act(Enum):
    GELU = "gelu"


@dataclass(frozen=True)
class Config(nl.NKIObject):
    tile: int = 128
    name: Optional[str] = None

    def __post_init__(self):
        assert self.tile <= 128, f"tile {self.tile}"

    def tiles(self, total):
        return (total + self.tile - 1) // self.tile


def largest(a, b=1):
    return max(a, b) if a is not None else b


@nki.jit
def good(x, config=Config(), *rest):
    rows, columns = x.shape
    tiles = [nl.ndarray((config.tile, columns), x.dtype) for _ in range(config.tiles(rows))]
    options = {"scale": 1.0}
    i = 0
    with nl.no_reorder():
        while i < len(tiles):
            nisa.dma_copy(dst=tiles[i], src=x[nl.ds(i * largest(config.tile), config.tile)])
            i += 1
    for index, tile in enumerate(tiles):
        nisa.tensor_scalar(tile, tile, nl.multiply, options["scale"] or 2.0)
        print(f"tile {index}", *rest)
    return tuple(tiles)


def keyword_only(x, *, scale): ...
def list_default(x, sizes=[1]): ...
def tries(x):
    try:
        return x
    except ValueError:
        return None


def raises(x):
    raise ValueError("no")


def host(x):
    return np.sum(x)


def sums(x):
    return sum([1, 2])


def gets(x):
    return getattr(x, "shape")


def yields(x):
    yield x


def generates(x):
    return tuple(i for i in range(3))


def a_set(x):
    return {1, 2}


def imports(x):
    import math

    return math


def opens(x):
    with open("f") as f:
        return f


def a_string(x):
    return nl.ndarray((2, 2), nl.float32, buffer="sbuf")


def too_large(x):
    return 2**3 + 5000000000


def a_range(x):
    return ncc.ReplicaGroup([list(range(2))])


def matrices(x):
    return x @ x


def a_global(x):
    global counter
    counter = 1


def for_else(x):
    for _ in range(2):
        pass
    else:
        return 1


def numbered(x):
    return {"a": 1, 2: 3}


class Plain: ...


class WithProperty(nl.NKIObject):
    @property
    def size(self):
        return 1


class Numbers(IntEnum):
    ONE = 1


def uses_plain(x):
    return Plain()


def uses_property(x):
    return WithProperty().size


def uses_numbers(x):
    return Numbers.ONE


def calls_bad(x):
    return tries(x)


FINDINGS: dict[str, tuple[Callable[..., Any], str]] = {
    "keyword-only": (keyword_only, "keyword-only arguments"),
    "list default": (list_default, "a list, set or dict as default"),
    "try": (tries, "try: not part"),
    "raise": (raises, "raise"),
    "numpy": (host, r"np.sum\(\): host libraries"),
    "sum": (sums, r"sum\(\): not among the builtins"),
    "getattr": (gets, r"getattr\(\)"),
    "yield": (yields, "yield"),
    "generator": (generates, "generator expressions"),
    "set": (a_set, "sets"),
    "import": (imports, "an import inside"),
    "with": (opens, "with: only nl.no_reorder"),
    "string buffer": (a_string, "buffer='sbuf'"),
    "large integer": (too_large, "5000000000: integers have 32 bits"),
    "range in a group": (a_range, r"range\(\) in a ReplicaGroup"),
    "matrix operator": (matrices, "the operator @"),
    "global": (a_global, "global"),
    "a number as key": (numbered, "2 as a key: dicts in kernels have strings"),
    "else of a loop": (for_else, "else of a loop"),
    "a plain class": (uses_plain, "class Plain: classes in kernels derive"),
    "a property": (uses_property, "size: properties are not resolved"),
    "numbers": (uses_numbers, "enums of integers"),
    "a helper": (calls_bad, "try: not part"),
}


@pytest.mark.parametrize("name", FINDINGS)
def test_python_that_does_not_compile_is_found(name: str) -> None:
    kernel, words = FINDINGS[name]
    with pytest.raises(KernelError, match=words) as caught:
        check(nki.jit(kernel))
    assert caught.value.rule == "language"
    assert caught.value.where.file == __file__


def test_the_language_of_kernels_passes() -> None:
    assert lint(good) == []
    check(good)


def test_findings_point_at_their_lines() -> None:
    source = open(__file__).read().splitlines()
    for kernel, words in ((tries, "try:"), (calls_bad, "try:"), (host, "np.sum")):
        (finding,) = [f for f in lint(kernel)]
        assert words in source[finding.where.line - 1]


def test_closures_are_followed() -> None:
    inner = raises

    def kernel(x):
        return inner(x)

    assert [f.what for f in lint(kernel)] == ["raise (use assert): not part of the kernel language"]


def test_a_function_without_a_file_is_refused_by_name() -> None:
    namespace = {}
    exec("def typed(x): return x", namespace)
    with pytest.raises(ValueError, match="typed has no source to read"):
        lint(namespace["typed"])
