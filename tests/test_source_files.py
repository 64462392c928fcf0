"""Rules that every Python file of ours keeps."""

import ast

import pytest
from packages_of_workspace import ROOT, named, python_files, sources

LONGEST = 400


def test_no_file_is_too_long_to_hold_in_the_head():
    assert named([file for file in python_files() if len(file.read_text().splitlines()) > LONGEST]) == []


def test_tests_are_no_package():
    tests = [
        file
        for folder in (ROOT / "tests", *ROOT.glob("packages/*/tests"))
        for file in folder.rglob("test_*.py")
    ]
    assert named([file for file in {test.with_name("__init__.py") for test in tests} if file.exists()]) == []


def test_no_file_uses_a_mock_library():
    users = [
        file for file in python_files() if {"mock", "unittest.mock"} & imported(ast.parse(file.read_text()))
    ]
    assert named(users) == []


def test_variables_of_the_environment_are_read_where_they_are_declared():
    readers = [
        file
        for file in sources()
        if file.name not in ("envs.py", "env_var.py") and reads_environment(ast.parse(file.read_text()))
    ]
    assert named(readers) == []


def test_no_file_knows_the_machine_it_was_written_on():
    homes = ("/ro" + "ot/", "/ho" + "me/", "/wo" + "rk/")
    tracked = [*python_files(), *ROOT.glob("**/*.md"), *ROOT.glob(".github/**/*.yml"), ROOT / ".ci" / "run"]
    ours = [file for file in tracked if not {".venv", ".nox"} & set(file.parts)]
    assert named([file for file in ours if any(home in file.read_text() for home in homes)]) == []


@pytest.mark.parametrize(
    ("code", "reads"),
    [
        ("os.getenv('A')", True),
        ("os.environ.get('A')", True),
        ("x = os.environ['A']", True),
        ("'A' in os.environ", True),
        ("os.environ.setdefault('A', '1')", True),
        ("from os import environ", True),
        ("os.environ['A'] = '1'", False),
        ("subprocess.run([], env={**os.environ, 'A': '1'})", False),
        ("os.environ.pop('A', None)", False),
    ],
)
def test_the_search_for_reads_finds_them(code, reads):
    assert reads_environment(ast.parse(code)) is reads


def imported(tree: ast.Module) -> set[str]:
    """Names of the modules that a file imports, and of what it takes from them."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


def reads_environment(tree: ast.Module) -> bool:
    """Whether a file asks for single variables; to set them or to hand all of them on is no read."""
    if {"os.environ", "os.getenv"} & imported(tree):
        return True
    return any(_is_read(node) for node in ast.walk(tree))


def _is_read(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        called = ast.unparse(node.func)
        return called in ("os.getenv", "os.environ.get", "os.environ.setdefault", "os.environ.items")
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        return ast.unparse(node.value) == "os.environ"
    return isinstance(node, ast.Compare) and "os.environ" in map(ast.unparse, node.comparators)
