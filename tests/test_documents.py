"""Pages: their Python runs, their links lead somewhere, the commands they show exist."""

import re
import subprocess
import sys

import pytest
from packages_of_workspace import ROOT

PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("packages/*/README.md")]
LINK = re.compile(r"\]\((?!https?://|#)([^)#]+)")
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SESSION = re.compile(r"nox -s \"?([a-z_0-9.-]+)")


def by_name(page):
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=by_name)
def test_links_lead_somewhere(page):
    assert [link for link in LINK.findall(page.read_text()) if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", [page for page in PAGES if BLOCK.search(page.read_text())], ids=by_name)
def test_python_runs(page, tmp_path):
    """The blocks of one page run one after the other, as a reader would."""
    code = "\n".join(BLOCK.findall(page.read_text()))
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, timeout=60)


def test_sessions_exist():
    listed = subprocess.run(
        [sys.executable, "-m", "nox", "-l"], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    ).stdout
    known = set(re.findall(r"^[*-] ([a-z_0-9.-]+)", listed, re.MULTILINE))
    files = [*PAGES, *ROOT.glob(".github/workflows/*.yml"), ROOT / ".ci" / "run"]
    named = {name for file in files for name in SESSION.findall(file.read_text())}
    assert named
    assert named <= known
