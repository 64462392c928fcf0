"""Every published group list of the two trn2 layouts, as literals."""

import pytest

from omni_neuron.distributed.layout import ParallelLayout
from omni_neuron.distributed.placement import published, published_layout
from omni_neuron.distributed.placement.published import physical_mesh
from omni_neuron.distributed.topology import instance

TRN2 = instance("trn2.48xlarge")


def lists(text):
    """Groups out of lines of ranks."""
    return [tuple(map(int, line.split())) for line in text.strip().splitlines()]


def pairs(text):
    """Groups of two, out of words such as 0-12."""
    return [tuple(map(int, word.split("-"))) for word in text.split()]


MESH_ROWS = lists("""
    0 1 2 3 12 13 14 15
    4 5 6 7 8 9 10 11
    16 17 18 19 28 29 30 31
    20 21 22 23 24 25 26 27
    32 33 34 35 44 45 46 47
    36 37 38 39 40 41 42 43
    48 49 50 51 60 61 62 63
    52 53 54 55 56 57 58 59
""")
MESH_COLUMNS = lists("""
    0 4 16 20 32 36 48 52
    1 5 17 21 33 37 49 53
    2 6 18 22 34 38 50 54
    3 7 19 23 35 39 51 55
    12 8 28 24 44 40 60 56
    13 9 29 25 45 41 61 57
    14 10 30 26 46 42 62 58
    15 11 31 27 47 43 63 59
""")
PUBLISHED = {
    (4, 8, 2): {
        "tp": lists("""
            0 1 2 3
            12 13 14 15
            4 5 6 7
            8 9 10 11
            16 17 18 19
            28 29 30 31
            20 21 22 23
            24 25 26 27
            32 33 34 35
            44 45 46 47
            36 37 38 39
            40 41 42 43
            48 49 50 51
            60 61 62 63
            52 53 54 55
            56 57 58 59
        """),
        "cp": MESH_COLUMNS,
        "cfg": pairs("""
            0-12  1-13  2-14  3-15  4-8  5-9  6-10  7-11
            16-28  17-29  18-30  19-31  20-24  21-25  22-26  23-27
            32-44  33-45  34-46  35-47  36-40  37-41  38-42  39-43
            48-60  49-61  50-62  51-63  52-56  53-57  54-58  55-59
        """),
    },
    (8, 4, 2): {
        "tp": MESH_ROWS,
        "cp": lists("""
            0 16 32 48
            4 20 36 52
            1 17 33 49
            5 21 37 53
            2 18 34 50
            6 22 38 54
            3 19 35 51
            7 23 39 55
            12 28 44 60
            8 24 40 56
            13 29 45 61
            9 25 41 57
            14 30 46 62
            10 26 42 58
            15 31 47 63
            11 27 43 59
        """),
        "cfg": pairs("""
            0-4  16-20  32-36  48-52  1-5  17-21  33-37  49-53
            2-6  18-22  34-38  50-54  3-7  19-23  35-39  51-55
            12-8  28-24  44-40  60-56  13-9  29-25  45-41  61-57
            14-10  30-26  46-42  62-58  15-11  31-27  47-43  63-59
        """),
    },
    (8, 4, 1): {
        "tp": MESH_ROWS[:4],
        "cp": lists("""
            0 4 16 20
            1 5 17 21
            2 6 18 22
            3 7 19 23
            12 8 28 24
            13 9 29 25
            14 10 30 26
            15 11 31 27
        """),
        "cfg": [(rank,) for rank in range(32)],
    },
}


def test_the_physical_mesh():
    assert list(physical_mesh()) == MESH_ROWS
    assert list(zip(*physical_mesh(), strict=True)) == MESH_COLUMNS


def test_the_physical_mesh_meets_its_closed_form():
    for row, ranks in enumerate(physical_mesh()):
        for column, rank in enumerate(ranks):
            q = rank % 16 // 4
            assert column == rank % 4 + 4 * (q // 2)
            assert row == 2 * (rank // 16) + (q + 1) // 2 % 2


def check_published_groups(degrees):
    layout = published_layout(*degrees, TRN2)
    assert (layout.tp, layout.cp, layout.cfg) == degrees
    for name, groups in PUBLISHED[degrees].items():
        assert sorted(layout.groups(name)) == sorted(groups)


@pytest.mark.parametrize("degrees", PUBLISHED)
def test_published_groups(degrees):
    check_published_groups(degrees)


def exchanged(first, second):
    """The mesh with two of its cores exchanged."""
    mesh = published.physical_mesh()
    swap = {first: second, second: first}
    return lambda: tuple(tuple(swap.get(core, core) for core in row) for row in mesh)


PLANTED = {
    "two cores of one chip exchanged": exchanged(12, 13),
    "the chips of one pair exchanged on one core": exchanged(0, 12),
    "two rows cross": exchanged(31, 27),
    "plain rows": lambda: tuple(tuple(range(first, first + 8)) for first in range(0, 64, 8)),
    "columns sorted": lambda: tuple(zip(*map(sorted, MESH_COLUMNS), strict=True)),
}


@pytest.mark.parametrize("degrees", PUBLISHED)
@pytest.mark.parametrize("bug", PLANTED)
def test_a_planted_bug_in_a_group_list_is_caught(bug, degrees, monkeypatch):
    monkeypatch.setattr(published, "physical_mesh", PLANTED[bug])
    with pytest.raises(AssertionError):
        check_published_groups(degrees)


@pytest.mark.parametrize("name", ["tp", "cp", "cfg"])
def test_a_planted_stride_is_caught(name, monkeypatch):
    right = ParallelLayout._degree_and_stride

    def wrong(layout, asked):
        degree, stride = right(layout, asked)
        return degree, (4 if asked == "tp" else stride // 2) if asked == name else stride

    monkeypatch.setattr(ParallelLayout, "_degree_and_stride", wrong)
    with pytest.raises(AssertionError):
        check_published_groups((4, 8, 2))


def test_tensor_parallel_8_with_context_parallel_8_is_both_layouts():
    layout = published_layout(8, 8, 1, TRN2)
    assert sorted(layout.groups("tp")) == sorted(MESH_ROWS)
    assert sorted(layout.groups("cp")) == sorted(MESH_COLUMNS)


def test_the_requested_factors_of_context_parallelism_are_kept():
    layout = published_layout(4, 8, 2, TRN2, ulysses=2, vae=16, text_encoder="tp_cp")
    assert (layout.ulysses, layout.ring, layout.vae, layout.text_encoder) == (2, 4, 16, "tp_cp")
    assert layout.group_of("ulysses", 28) == (28, 24)
    assert layout.group_of("ring", 28) == (12, 28, 44, 60)
    assert layout.group_of("vae", 28) == tuple(range(16, 32))


@pytest.mark.parametrize(
    "degrees", [(4, 4, 1), (4, 16, 1), (4, 8, 1), (8, 1, 2), (8, 16, 1), (8, 8, 2), (2, 8, 2), (16, 4, 1)]
)
def test_nothing_else_was_published(degrees):
    assert published_layout(*degrees, TRN2) is None


def test_only_the_64_logical_cores_of_trn2_have_the_mesh():
    for machine in (instance("trn3"), instance("trn2.48xlarge", lnc=1), instance("cpu")):
        assert published_layout(4, 8, 2, machine) is None


@pytest.mark.parametrize("degrees", [(4, 8, 2), (8, 4, 2), (8, 4, 1), (4, 4, 1)])
def test_arithmetic_groups_of_other_machines(degrees):
    tp, cp, cfg = degrees
    layout, half = ParallelLayout(*degrees), tp * cp
    assert layout.groups("tp") == [tuple(range(tp * i, tp * i + tp)) for i in range(layout.world_size // tp)]
    assert layout.groups("cp") == [
        tuple(half * branch + t + tp * c for c in range(cp)) for branch in range(cfg) for t in range(tp)
    ]
    if cfg == 2:
        assert layout.groups("cfg") == [(b, b + 32) for b in range(32)]
