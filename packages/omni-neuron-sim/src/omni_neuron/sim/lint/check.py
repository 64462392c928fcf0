"""Linting a kernel together with the functions and classes that it reaches."""

import ast
import inspect
import textwrap
from collections.abc import Callable
from typing import Any

from omni_neuron.sim.errors import KernelError
from omni_neuron.sim.lint.grammar import Finding, walk

_OWN = "omni_neuron.sim."


def lint(kernel: Any) -> list[Finding]:
    """What of a kernel's source, and of the Python functions and classes it calls, does not compile.

    ValueError where the source cannot be read.
    """
    findings: list[Finding] = []
    seen: set[Any] = set()
    pending = [_plain(kernel)]
    while pending:
        part = pending.pop()
        if part in seen:
            continue
        seen.add(part)
        tree, file, offset = _source(part)
        findings += walk(tree, file, offset)
        pending += _reached(part, tree)
    return sorted(findings, key=lambda f: (f.where.file, f.where.line))


def check(kernel: Any) -> None:
    """KernelError with the first finding, if there is one."""
    findings = lint(kernel)
    if findings:
        more = f" (and {len(findings) - 1} more)" if len(findings) > 1 else ""
        raise KernelError("language", f"{findings[0].what}{more}.", where=findings[0].where)


def _plain(value: Any) -> Any:
    """The function behind a decorated kernel."""
    return inspect.unwrap(getattr(value, "function", value))


def _source(part: Callable[..., Any]) -> tuple[ast.AST, str, int]:
    try:
        lines, first = inspect.getsourcelines(part)
    except OSError:
        raise ValueError(
            f"{part.__name__} has no source to read: lint functions that stand in a file."
        ) from None
    tree = ast.parse(textwrap.dedent("".join(lines)))
    return tree.body[0], inspect.getsourcefile(part) or "", first - 1


def _reached(part: Any, tree: ast.AST) -> list[Any]:
    """Python functions and classes that the source names, those of NKI itself left out."""
    module = inspect.getmodule(part)
    known = dict(getattr(part, "__globals__", None) or (vars(module) if module else {}))
    if inspect.isfunction(part):
        known.update(inspect.getclosurevars(part).nonlocals)
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Name | ast.Attribute):
            continue
        value = _plain(_resolve(node, known))
        if (inspect.isfunction(value) or inspect.isclass(value)) and _is_kernel_source(value):
            found.append(value)
    return found


def _resolve(node: ast.AST, known: dict[str, Any]) -> Any:
    if isinstance(node, ast.Name):
        return known.get(node.id)
    if isinstance(node, ast.Attribute):
        owner = _resolve(node.value, known)
        return getattr(owner, node.attr, None) if inspect.ismodule(owner) else None
    return None


def _is_kernel_source(value: Any) -> bool:
    """Written for kernels: not part of NKI, of the standard library or of an installed package."""
    module = value.__module__ or ""
    if module.startswith(_OWN) or module.split(".")[0] in ("nki", "builtins"):
        return False
    try:
        file = inspect.getsourcefile(value) or ""
    except TypeError:
        return False
    return bool(file) and "site-packages" not in file and "/lib/python" not in file
