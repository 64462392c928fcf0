from collections.abc import Callable
from pathlib import Path

import pytest

AddVerb = Callable[..., None]


@pytest.fixture
def add_verb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AddVerb:
    """Install a package with one verb into a folder on `sys.path`."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delenv("OMNI_NEURON_DEBUG", raising=False)

    def add(
        name: str, body: str, *, summary: str = 'SUMMARY = "A verb of a test."', package: bool = False
    ) -> None:
        module = f"verb_{tmp_path.name}_{name}".replace("-", "_")
        add_arguments = "def add_arguments(parser):\n    parser.add_argument('--number', type=int)"
        source = f"{summary}\n\n{add_arguments}\n\n{body}\n"
        if package:
            (tmp_path / module).mkdir()
            (tmp_path / module / "__init__.py").write_text("raise RuntimeError('imported')\n")
            (tmp_path / module / "verb.py").write_text(source)
        else:
            (tmp_path / f"{module}.py").write_text(source)
        info = tmp_path / f"{module}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
        target = f"{module}.verb" if package else module
        (info / "entry_points.txt").write_text(f"[omni_neuron.commands]\n{name} = {target}\n")

    return add
