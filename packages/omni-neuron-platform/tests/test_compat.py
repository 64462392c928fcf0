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
    """Answers once, in whichever form it is asked."""

    def generate(self, prompt: str, parameters: str, *, py_generator: bool, use_tqdm: bool) -> Any:
        assert py_generator, "the list form ends the engine when a request is refused"
        yield "generate", prompt, parameters

    def resolve_sampling_params_list(self, parameters: str) -> list[str]:
        return [parameters]

    def _run_generation(self, prompt: str, parameters: list[str], use_tqdm: bool) -> Any:
        yield "inside", prompt, *parameters


@pytest.mark.parametrize(("media", "way"), [(None, "inside"), (object(), "generate")], ids=["0.29", "0.30"])
def test_a_request_is_served_in_the_form_that_leaves_the_engine_running(
    media: object, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compat, "_media", media)
    assert compat.serve(_Omni(), "prompt", "parameters") == (way, "prompt", "parameters")
