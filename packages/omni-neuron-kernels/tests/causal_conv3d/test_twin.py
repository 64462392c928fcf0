import pytest
import torch

from omni_neuron.kernels.causal_conv3d.twin import causal_conv3d_twin, pack_weight


def test_a_packed_weight_is_indexed_by_tap_first() -> None:
    weight = torch.randn(5, 4, 3, 2, 1)
    packed = pack_weight(weight)
    assert packed.shape == (3, 2, 1, 4, 5)
    assert packed.is_contiguous()
    assert packed[2, 1, 0, 3, 4] == weight[4, 3, 2, 1, 0]


def test_a_weight_of_two_dimensions_is_one_frame() -> None:
    weight = torch.randn(5, 4, 3, 3)
    assert torch.equal(pack_weight(weight), pack_weight(weight.unsqueeze(2)))


@pytest.mark.parametrize("size", [(3, 3, 3), (3, 1, 1), (1, 3, 3), (1, 1, 1), (2, 3, 1)])
def test_it_is_torch_s_convolution_padded_in_front(size: tuple[int, int, int]) -> None:
    conv = torch.nn.Conv3d(6, 4, size, padding=(0, size[1] // 2, size[2] // 2))
    x = torch.randn(2, 6, 5, 7, 3)
    padded = torch.nn.functional.pad(x, (0, 0, 0, 0, size[0] - 1, 0))
    found = causal_conv3d_twin(x, pack_weight(conv.weight), conv.bias)
    torch.testing.assert_close(found, conv(padded))


def test_a_video_in_chunks_is_the_whole_video() -> None:
    """What a chunk needs of the one before are its last two frames."""
    x, weight, bias = torch.randn(1, 3, 6, 4, 4), torch.randn(3, 3, 3, 3, 2), torch.randn(2)
    whole = causal_conv3d_twin(x, weight, bias)
    first = causal_conv3d_twin(x[:, :, :3], weight, bias)
    second = causal_conv3d_twin(x[:, :, 3:], weight, bias, x[:, :, 1:3])
    torch.testing.assert_close(torch.cat([first, second], dim=2), whole)
