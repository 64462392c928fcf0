from typing import Any

import pytest
import torch
from torch import nn

from omni_neuron.runtime.adapter import get_adapter
from omni_neuron.wan22.pipelines.offload import needs_offload, offloaded

HOST, META = torch.device("cpu"), torch.device("meta")


class Placed(nn.Module):
    """Stands on a device that this machine does not have, and notes where it is sent."""

    def __init__(self, refuses: torch.device | None = None) -> None:
        super().__init__()
        self.refuses = refuses
        self.moves: list[torch.device] = []

    def parameters(self, recurse: bool = True) -> Any:
        return iter([self])

    @property
    def device(self) -> torch.device:
        return self.moves[-1] if self.moves else torch.device("meta")

    def to(self, device: torch.device) -> Any:  # type: ignore[override]
        if device == self.refuses:
            raise RuntimeError("out of memory")
        self.moves.append(device)
        return self


def test_modules_are_on_the_host_during_the_body_and_back_after_it() -> None:
    modules = [Placed(), Placed()]
    with offloaded(modules, HOST):
        assert [module.device for module in modules] == [HOST, HOST]
    assert [module.moves for module in modules] == [[HOST, META], [HOST, META]]


def test_an_exception_of_the_body_brings_them_back_too() -> None:
    modules = [Placed(), Placed()]
    with pytest.raises(KeyError), offloaded(modules, HOST):
        raise KeyError("decode")
    assert [module.device for module in modules] == [META, META]


def test_one_that_cannot_leave_does_not_strand_the_others() -> None:
    first, second = Placed(), Placed(refuses=HOST)
    with pytest.raises(RuntimeError, match="out of memory"), offloaded([first, second], HOST):
        raise AssertionError("the body must not run")
    assert first.moves == [HOST, META]


def test_one_that_cannot_return_does_not_keep_the_others_away() -> None:
    first, second = Placed(), Placed(refuses=META)
    with pytest.raises(RuntimeError, match="out of memory"), offloaded([first, second], HOST):
        pass
    assert first.moves == [HOST, META]


@pytest.mark.parametrize(
    ("target", "needed"), [("trn2", True), ("trn2-rev2", True), ("trn3", False), ("trn3pre", False)]
)
def test_only_trn2_is_too_small_for_experts_and_decoder(
    target: str, needed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", target)
    assert get_adapter().platform_target() == target
    assert needs_offload(META) is needed
    assert not needs_offload(HOST)
