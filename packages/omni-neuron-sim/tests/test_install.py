import importlib
import sys
import types
from pathlib import Path

import pytest

from omni_neuron.sim import install, nki


def test_import_nki_works_only_while_asked() -> None:
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("nki")
    with install():
        assert importlib.import_module("nki") is nki
        for name in ("language", "isa", "collectives", "compiler", "typing", "simulator"):
            assert importlib.import_module(f"nki.{name}") is getattr(nki, name)
        assert importlib.import_module("nki.isa.constants").reduce_cmd is nki.isa.reduce_cmd
        builder = importlib.import_module("nki.compiler.kernel_builder")
        assert builder.compile_kernel is nki.compiler.kernel_builder.compile_kernel
        namespace: dict[str, object] = {}
        exec("from nki.isa import dma_engine, oob_mode\nimport nki.language as nl\nx = nl.add", namespace)
        assert namespace["x"] is nki.language.add
        with install():
            pass
    assert not [name for name in sys.modules if name.split(".")[0] == "nki"]


def test_another_nki_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nki", types.ModuleType("nki"))
    with pytest.raises(RuntimeError, match="A module nki is loaded already"):
        install()


def test_an_installed_nki_is_not_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "nki.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(RuntimeError, match="kernels compile with it"):
        install()


def test_the_package_declares_its_entry_point() -> None:
    project = (Path(__file__).parents[1] / "pyproject.toml").read_text()
    assert '[project.entry-points."omni_neuron.nki_runtime"]\nsim = "omni_neuron.sim.nki"' in project
