from hypothesis import given
from hypothesis import strategies as st

from omni_neuron.sim.cost.hazards import Hazards
from omni_neuron.sim.cost.trace import Operand
from omni_neuron.sim.memory.spaces import MemorySpace
from omni_neuron.sim.numerics.formats import uint8

box = st.builds(
    lambda p, n, b, m: (p, p + n, b, b + m),
    st.integers(0, 100), st.integers(0, 27), st.integers(0, 9000), st.integers(0, 5000),
)  # fmt: skip


@given(st.lists(st.tuples(box, st.booleans(), st.integers(1, 100)), max_size=25), st.booleans())
def test_an_access_waits_for_the_last_one_that_it_may_not_overtake(
    accesses: list[tuple[tuple[int, int, int, int], bool, int]], on_chip: bool
) -> None:
    """Against a list of everything that ever happened; in program order a later write never ends earlier."""
    hazards = Hazards()
    space = MemorySpace.sbuf if on_chip else MemorySpace.shared_hbm
    done: list[tuple[tuple[int, int, int, int], bool, float]] = []
    for index, (area, writes, length) in enumerate(accesses):
        operand = Operand(space, uint8, (128, 1), 1, 7, area)
        ready, blame = hazards.ready(operand, 7, area, writes)
        expected = [
            end
            for other, wrote, end in done
            if (wrote or writes)
            and area[0] <= other[1] and other[0] <= area[1] and area[2] <= other[3] and other[2] <= area[3]
        ]  # fmt: skip
        assert ready == max(expected, default=0.0)
        assert (blame == -1) == (not expected)
        hazards.note(operand, 7, area, writes, ready + length, index)
        done.append((area, writes, ready + length))
