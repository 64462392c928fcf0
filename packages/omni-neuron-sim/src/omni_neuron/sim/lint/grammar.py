"""The part of Python that kernels are written in, as a walk over their syntax.

Source: the NKI language guide, and what public kernels were seen to use (`is` is documented as missing and
used everywhere, so it passes).
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from omni_neuron.sim.errors import SourceLine

FORBIDDEN_BUILTINS = frozenset({
    "all", "any", "bytes", "callable", "chr", "compile", "complex", "delattr", "dir", "eval", "exec",
    "filter", "format", "frozenset", "getattr", "globals", "hasattr", "hash", "hex", "id", "input",
    "iter", "locals", "map", "memoryview", "next", "object", "oct", "open", "ord", "pow", "repr", "set",
    "setattr", "sorted", "sum", "vars",
})  # fmt: skip
HOST_LIBRARIES = frozenset({"jax", "jnp", "np", "numpy", "torch"})
BASES = frozenset({"NKIObject", "Enum", "IntEnum", "StrEnum"})
LARGEST_INT = 2**32 - 1

_STATEMENTS: dict[type[ast.AST], str] = {
    ast.AsyncFunctionDef: "async functions",
    ast.AsyncFor: "async loops",
    ast.AsyncWith: "async with",
    ast.Await: "await",
    ast.Delete: "del",
    ast.Global: "global",
    ast.Nonlocal: "nonlocal",
    ast.Import: "an import inside",
    ast.ImportFrom: "an import inside",
    ast.Match: "match",
    ast.Raise: "raise (use assert)",
    ast.Try: "try",
    ast.TryStar: "try",
    ast.Yield: "yield",
    ast.YieldFrom: "yield",
    ast.Set: "sets",
    ast.SetComp: "sets",
    ast.DictComp: "dict comprehensions",
    ast.GeneratorExp: "generator expressions",
    ast.NamedExpr: ":=",
    ast.MatMult: "the operator @",
}


@dataclass(frozen=True)
class Finding:
    """Something that does not compile."""

    where: SourceLine
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


def walk(tree: ast.AST, file: str, offset: int) -> Iterator[Finding]:
    """Findings in a function or class whose first line is `offset + 1` of the file."""
    for node in ast.walk(tree):
        for what in _findings(node):
            yield Finding(SourceLine(file, getattr(node, "lineno", 1) + offset), what)


def _findings(node: ast.AST) -> Iterator[str]:
    if type(node) in _STATEMENTS:
        yield f"{_STATEMENTS[type(node)]}: not part of the kernel language"
    elif isinstance(node, ast.FunctionDef):
        yield from _function(node)
    elif isinstance(node, ast.ClassDef):
        yield from _class(node)
    elif isinstance(node, ast.Call):
        yield from _call(node)
    elif isinstance(node, ast.With):
        yield from _with(node)
    elif isinstance(node, ast.Constant):
        yield from _constant(node)
    elif isinstance(node, ast.Dict):
        yield from _dict(node)
    elif isinstance(node, ast.For | ast.While) and node.orelse:
        yield "else of a loop: not part of the kernel language"


def _function(node: ast.FunctionDef) -> Iterator[str]:
    if node.args.kwonlyargs:
        yield f"{node.name}: keyword-only arguments (the * in the signature) do not compile"
    for default in [*node.args.defaults, *node.args.kw_defaults]:
        if isinstance(default, ast.List | ast.Set | ast.Dict):
            yield f"{node.name}: a list, set or dict as default; arguments are tuples and numbers"
    for decorator in node.decorator_list:
        if _last_name(decorator) in ("property", "cached_property", "setter"):
            yield f"{node.name}: properties are not resolved while a kernel is traced; make it a method"


def _class(node: ast.ClassDef) -> Iterator[str]:
    names = [_last_name(base) for base in node.bases]
    if not names or any(name not in BASES for name in names):
        yield f"class {node.name}: classes in kernels derive from nl.NKIObject (or an Enum) and from "
        "nothing else"
    if any(name in ("IntEnum",) for name in names):
        yield f"class {node.name}: enums of integers do not compile"


def _call(node: ast.Call) -> Iterator[str]:
    if isinstance(node.func, ast.Name) and node.func.id in FORBIDDEN_BUILTINS:
        yield f"{node.func.id}(): not among the builtins of kernels"
    root = _first_name(node.func)
    if isinstance(node.func, ast.Attribute) and root in HOST_LIBRARIES:
        yield f"{ast.unparse(node.func)}(): host libraries do not run inside a kernel"
    for keyword in node.keywords:
        if (
            keyword.arg == "buffer"
            and isinstance(keyword.value, ast.Constant)
            and isinstance(keyword.value.value, str)
        ):
            yield f"buffer={keyword.value.value!r}: buffers are named by nl.sbuf, nl.psum, nl.hbm, "
            "nl.shared_hbm"
    if _last_name(node.func) == "ReplicaGroup" and any(
        isinstance(inner, ast.Call) and _last_name(inner.func) == "range" for inner in ast.walk(node)
    ):
        yield "range() in a ReplicaGroup: ranks are written out as tuples"


def _with(node: ast.With) -> Iterator[str]:
    for item in node.items:
        if not isinstance(item.context_expr, ast.Call) or _last_name(item.context_expr.func) != "no_reorder":
            yield "with: only nl.no_reorder()"


def _constant(node: ast.Constant) -> Iterator[str]:
    if isinstance(node.value, bytes | complex):
        yield f"{node.value!r}: kernels have None, bools, 32-bit numbers and strings"
    elif isinstance(node.value, int) and abs(node.value) > LARGEST_INT:
        yield f"{node.value}: integers have 32 bits"


def _dict(node: ast.Dict) -> Iterator[str]:
    for key in node.keys:
        if isinstance(key, ast.Constant) and not isinstance(key.value, str):
            yield f"{key.value!r} as a key: dicts in kernels have strings as keys"


def _last_name(node: ast.AST) -> str:
    if isinstance(node, ast.Call):
        return _last_name(node.func)
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _first_name(node: ast.AST) -> str:
    while isinstance(node, ast.Attribute | ast.Call):
        node = node.value if isinstance(node, ast.Attribute) else node.func
    return node.id if isinstance(node, ast.Name) else ""
