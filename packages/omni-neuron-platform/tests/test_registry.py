from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import pytest

from omni_neuron.platform import registry
from omni_neuron.platform.registry import PipelineEntry, pipeline_entries

ENTRY = PipelineEntry("AnyPipeline", "package.module", "AnyClass", "pre", "post")


def _doors(*modules: object) -> Iterable[Any]:
    return [
        SimpleNamespace(name=f"door{index}", value="package", load=lambda module=module: module)
        for index, module in enumerate(modules)
    ]


def test_wan_comes_through_the_door() -> None:
    assert {"WanPipeline", "Wan22Pipeline"} <= {entry.model_arch for entry in pipeline_entries()}


def test_third_parties_come_through_the_same_door(monkeypatch: pytest.MonkeyPatch) -> None:
    module = SimpleNamespace(PIPELINE_REGISTRY=[ENTRY])
    monkeypatch.setattr(registry, "entry_points", lambda group: _doors(module))
    assert list(pipeline_entries()) == [ENTRY]


@pytest.mark.parametrize(
    "module", [SimpleNamespace(), SimpleNamespace(PIPELINE_REGISTRY=[("AnyPipeline", "x")])]
)
def test_a_package_without_a_registry_is_named(module: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "entry_points", lambda group: _doors(module))
    with pytest.raises(TypeError, match=r"door0.*PIPELINE_REGISTRY"):
        list(pipeline_entries())
