import xml.etree.ElementTree as ElementTree

import pytest

from omni_neuron.distributed.layout import ParallelLayout
from omni_neuron.distributed.placement import place
from omni_neuron.distributed.planner.drawing import chip_rows, draw_svg, draw_text, panels
from omni_neuron.distributed.topology import instance

TRN2 = instance("trn2.48xlarge")
PUBLISHED = place(ParallelLayout(8, 4, 2, vae=32), TRN2)


def test_panels_number_the_groups_of_every_dimension_that_has_some():
    drawn = panels(PUBLISHED, TRN2)
    assert list(drawn) == ["tp", "ring", "cfg", "vae"]
    for name, numbers in drawn.items():
        for number, group in enumerate(PUBLISHED.groups(name)):
            assert {numbers[core] for core in group} == {number}


def test_chips_stand_as_on_the_torus():
    assert chip_rows(TRN2) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11], [12, 13, 14, 15]]
    assert chip_rows(instance("inf2.48xlarge"))[-1] == [8, 9, 10, 11]
    assert len(chip_rows(instance("trn2-ultraserver"))) == 16


def test_text_shows_the_published_rows_on_chips_0_and_3():
    """Ranks 0 to 3 and 12 to 15 are one group: chips 0 and 3, linked by the wrap of the torus row."""
    lines = draw_text(PUBLISHED, TRN2).splitlines()
    first = lines.index(next(line for line in lines if line.startswith("tensor parallel")))
    assert lines[first].endswith("8 groups of 8; group 0 is [0, 1, 2, 3, 12, 13, 14, 15]")
    chips = lines[first + 1].split("] [")
    assert chips[0].split()[-1] == chips[3].strip("]").split()[0] != chips[1].split()[0]


def test_cores_without_a_rank_are_dots():
    text = draw_text(place(ParallelLayout(4), TRN2), TRN2)
    assert text.splitlines()[2] == "  [0 0 0 0] [. . . .] [. . . .] [. . . .]"


@pytest.mark.parametrize("name", ["trn2.48xlarge", "trn3", "inf2.48xlarge"])
def test_svg_has_a_rectangle_per_core_and_panel(name):
    topology = instance(name)
    layout = place(ParallelLayout(2, 4), topology)
    root = ElementTree.fromstring(draw_svg(layout, topology))
    space = "{http://www.w3.org/2000/svg}"
    assert len(root.findall(f"{space}rect")) == 1 + len(panels(layout, topology)) * topology.cores
    labels = [text.text for text in root.findall(f"{space}text[@class='core']") if text.text]
    assert len(labels) == len(panels(layout, topology)) * layout.world_size


def test_svg_colours_follow_the_groups():
    root = ElementTree.fromstring(draw_svg(PUBLISHED, TRN2))
    fills = [rect.get("fill") for rect in root.findall("{http://www.w3.org/2000/svg}rect")][1:65]
    assert len(set(fills)) == 8
    assert fills[:4] == [fills[0]] * 4 == fills[12:16]


def test_one_rank_has_no_panels():
    layout = ParallelLayout()
    assert panels(layout, TRN2) == {}
    assert draw_svg(layout, TRN2).startswith("<svg")
