from omni_neuron.kernels.output_projection.plan import fits_whole, tiles_per_pass


def test_what_stays_in_sbuf() -> None:
    assert fits_whole(1280, 5120, 4, 2)  # ten heads of Wan, bf16
    assert not fits_whole(5120, 5120, 4, 2)
    assert tiles_per_pass(5120, 5120, 2) >= 4
    assert tiles_per_pass(200_000, 5120, 2) == 0
