import pytest
import torch

from omni_neuron.kernels.causal_conv3d.twin import causal_conv3d_twin, pack_weight


def normal(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))


def test_a_packed_weight_is_indexed_by_tap_first() -> None:
    weight = normal(5, 4, 3, 2, 1)
    packed = pack_weight(weight)
    assert packed.shape == (3, 2, 1, 4, 5)
    assert packed.is_contiguous()
    assert packed[2, 1, 0, 3, 4] == weight[4, 3, 2, 1, 0]


def test_a_weight_of_two_dimensions_is_one_frame() -> None:
    weight = normal(5, 4, 3, 3)
    assert torch.equal(pack_weight(weight), pack_weight(weight.unsqueeze(2)))


@pytest.mark.parametrize("size", [(3, 3, 3), (3, 1, 1), (1, 3, 3), (1, 1, 1), (2, 3, 1)])
def test_it_is_torch_s_convolution_padded_in_front(size: tuple[int, int, int]) -> None:
    x, weight, bias = normal(2, 6, 5, 7, 3), normal(4, 6, *size) / 10, normal(4)
    padded = torch.nn.functional.pad(x, (0, 0, 0, 0, size[0] - 1, 0))
    expected = torch.nn.functional.conv3d(padded, weight, bias, padding=(0, size[1] // 2, size[2] // 2))
    torch.testing.assert_close(causal_conv3d_twin(x, pack_weight(weight), bias, None), expected)


def test_a_video_in_chunks_is_the_whole_video() -> None:
    """What a chunk needs of the one before are its last two frames."""
    x, weight, bias = normal(1, 3, 6, 4, 4), normal(3, 3, 3, 3, 2), normal(2)
    whole = causal_conv3d_twin(x, weight, bias, None)
    first = causal_conv3d_twin(x[:, :, :3], weight, bias, None)
    second = causal_conv3d_twin(x[:, :, 3:], weight, bias, x[:, :, 1:3])
    torch.testing.assert_close(torch.cat([first, second], dim=2), whole)
