from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

_spec = importlib.util.spec_from_file_location(
    "stage_file_helper", Path(__file__).with_name("stage_file_helper.py")
)
assert _spec is not None
assert _spec.loader is not None
_helper = importlib.util.module_from_spec(_spec)
sys.modules["stage_file_helper"] = _helper
_spec.loader.exec_module(_helper)


@pytest.fixture
def files(tmp_path):
    return _helper.StageFiles(tmp_path)
