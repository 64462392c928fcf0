from __future__ import annotations

import importlib
import sys

import pytest

from omni_neuron.platform.stage_config.deferred import when_imported

NAME = "deferred_probe_module"


@pytest.fixture
def module(tmp_path, monkeypatch):
    (tmp_path / f"{NAME}.py").write_text("table = {'own': 1}\n")
    monkeypatch.syspath_prepend(tmp_path)
    finders = list(sys.meta_path)
    yield NAME
    sys.modules.pop(NAME, None)
    sys.meta_path[:] = finders


def test_the_action_follows_the_import(module):
    seen = []
    when_imported(module, lambda: seen.append(dict(sys.modules[module].table)))
    importlib.import_module("json")
    assert seen == []
    imported = importlib.import_module(module)
    assert seen == [{"own": 1}]
    assert imported.__spec__.loader is imported.__loader__
    assert type(imported.__loader__).__name__ == "SourceFileLoader"
    importlib.reload(imported)
    assert len(seen) == 1


def test_an_imported_module_is_acted_on_at_once(module):
    importlib.import_module(module)
    seen = []
    when_imported(module, lambda: seen.append(1))
    assert seen == [1]


def test_asking_twice_acts_once(module):
    seen = []
    when_imported(module, lambda: seen.append(1))
    when_imported(module, lambda: seen.append(2))
    importlib.import_module(module)
    assert seen == [1]


def test_a_module_that_does_not_exist_stays_missing():
    finders = list(sys.meta_path)
    when_imported("deferred_missing_module", lambda: None)
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("deferred_missing_module")
    assert sys.meta_path == finders
