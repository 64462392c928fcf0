"""Counts against those of the checkpoints themselves, and bytes per rank against the published table."""

import pytest

from omni_neuron.distributed.planner.model_files import load_model
from omni_neuron.distributed.planner.parameters import (
    block_matrices,
    block_vectors,
    dit_parameters,
    dit_parameters_per_rank,
    text_encoder_parameters,
    vae_parameters,
)


@pytest.mark.parametrize(
    ("name", "expert", "block", "vae"),
    [
        ("wan2.2-t2v-a14b", 14_288_491_584, 351_394_304, 126_892_531),
        ("wan2.2-i2v-a14b", 14_288_901_184, 351_394_304, 126_892_531),
        ("wan2.2-ti2v-5b", 4_999_787_712, 163_656_704, 704_688_668),
        ("wan2.1-t2v-1.3b", 1_418_996_800, 46_440_704, 126_892_531),
    ],
)
def test_every_parameter_of_the_checkpoints_is_counted(name, expert, block, vae):
    model = load_model(name)
    assert dit_parameters(model.dit) == expert
    assert block_matrices(model.dit) + block_vectors(model.dit) == block
    assert sum(vae_parameters(model.vae)) == vae
    assert text_encoder_parameters(model.text_encoder) == 5_680_910_336


@pytest.mark.parametrize(
    ("name", "tp", "gigabytes"),
    [
        ("wan2.2-t2v-a14b", 1, 28.58),
        ("wan2.2-t2v-a14b", 2, 14.53),
        ("wan2.2-t2v-a14b", 4, 7.50),
        ("wan2.2-t2v-a14b", 8, 3.99),
        ("wan2.2-ti2v-5b", 4, 2.64),
        ("wan2.1-t2v-1.3b", 4, 0.75),
    ],
)
def test_bytes_of_one_expert_per_rank(name, tp, gigabytes):
    assert 2e-9 * dit_parameters_per_rank(load_model(name).dit, tp) == pytest.approx(gigabytes, abs=0.01)
