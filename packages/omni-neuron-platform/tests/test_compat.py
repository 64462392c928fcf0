from typing import Any

import pytest
import torch

from omni_neuron.platform import compat

FRAMES = torch.zeros(1, 3, 5, 8, 8)


def test_an_engine_with_typed_media_gets_them() -> None:
    if compat._media is None:
        assert compat.video_output(FRAMES).output is FRAMES
        return
    output = compat.video_output(FRAMES, stage_durations={"denoise": 1.0})
    assert output.output is None
    assert output.media.video.tensor is FRAMES
    assert output.media.video.spec.layout is compat._media.VideoTensorLayout.BCTHW
    assert output.stage_durations == {"denoise": 1.0}


def test_an_engine_without_gets_the_bare_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compat, "_media", None)
    output = compat.video_output(FRAMES, stage_durations={"denoise": 1.0})
    assert output.output is FRAMES
    assert output.stage_durations == {"denoise": 1.0}


class _Omni:
    """Keeps how it was called, and answers once."""

    def generate(self, *arguments: Any, **options: Any) -> Any:
        self.called = (arguments, options)
        return iter(["output"]) if options.get("py_generator") else ["output"]


@pytest.mark.parametrize("media", [None, object()], ids=["0.29", "0.30"])
def test_a_request_is_served_in_the_form_that_leaves_the_engine_running(
    media: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compat, "_media", media)
    omni = _Omni()
    assert compat.serve(omni, "prompt", "parameters") == "output"
    assert omni.called[0] == ("prompt", "parameters")
    assert ("py_generator" in omni.called[1]) == (media is not None)
