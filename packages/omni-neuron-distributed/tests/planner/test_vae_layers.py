import pytest

from omni_neuron.distributed.planner.model_files import load_model
from omni_neuron.distributed.planner.vae_layers import decoder_layers, encoder_layers

OLD, NEW = load_model("wan2.2-t2v-a14b").vae, load_model("wan2.2-ti2v-5b").vae


@pytest.mark.parametrize(("vae", "decoder"), [(OLD, 33), (NEW, 34)])
def test_causal_convolutions_are_as_many_as_the_modules_have(vae, decoder):
    """Shortcuts are causal convolutions too, with one tap and so without a cache."""
    for layers, count in ((decoder_layers(vae), decoder), (encoder_layers(vae), 26)):
        shortcuts = sum(
            layer.kernel == 1 and not layer.norm and layer.inputs != layer.outputs for layer in layers
        )
        assert sum(layer.cached for layer in layers) + shortcuts == count


def test_the_decoder_ends_on_eight_times_the_latent_grid_and_the_first_frame_stays_one():
    last = decoder_layers(OLD)[-1]
    assert last.positions(21, 60, 104) == 81 * 480 * 832
    assert last.positions(1, 60, 104) == 480 * 832


def test_the_encoder_ends_on_the_latent_grid():
    last = encoder_layers(OLD)[-1]
    assert last.positions(21, 60, 104) == 21 * 60 * 104
    assert last.outputs == 32


def test_temporal_up_sampling_leaves_the_first_frame_out():
    temporal = [layer for layer in decoder_layers(OLD) if layer.skips_first]
    assert [(layer.inputs, layer.outputs) for layer in temporal] == [(384, 768), (384, 768)]
    assert [layer.output_frames(21) for layer in temporal] == [20, 40]
