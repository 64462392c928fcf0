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
