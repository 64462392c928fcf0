import pytest

from omni_neuron.kernels.tiles import staggered


@pytest.mark.parametrize("count", [0, 1, 2, 5])
@pytest.mark.parametrize("stages", [1, 3, 4])
@pytest.mark.parametrize("depth", [1, 2, 4])
def test_a_pipeline_keeps_its_depth(count: int, stages: int, depth: int) -> None:
    order = staggered(count, stages, depth)
    assert sorted(order) == [(stage, index) for stage in range(stages) for index in range(count)]
    at = {work: place for place, work in enumerate(order)}
    for index in range(count):
        places = [at[stage, index] for stage in range(stages)]
        assert places == sorted(places)
        if index + depth < count:  # whose first stage takes the same tile
            assert places[-1] < at[0, index + depth]


def test_stages_of_neighbours_alternate() -> None:
    assert staggered(3, 2, 4) == [(0, 0), (0, 1), (1, 0), (0, 2), (1, 1), (1, 2)]
