"""The frozen constants are the fit's, and the fit meets the published runs within the promised bars."""

from dataclasses import asdict, replace

import pytest

from omni_neuron.distributed.planner.calibration import (
    fit,
    predict,
    published_points,
    residual_table,
    residuals,
)
from omni_neuron.distributed.planner.search import MODEL_ERROR
from omni_neuron.distributed.planner.seconds import constants
from omni_neuron.runtime import envs

POINTS = published_points()


def test_the_fit_gives_the_frozen_constants():
    assert asdict(constants()) == pytest.approx(asdict(fit(POINTS)), rel=1e-3)


def test_published_runs_keep_their_placement_when_this_host_asks_for_contiguous_groups(monkeypatch):
    monkeypatch.setenv(envs.switch_cc.name, "1")
    assert published_points() == POINTS


def test_constants_are_physical():
    found = constants()
    assert 0 < found.compute_efficiency < 1
    assert 0 < found.link_efficiency < 1
    assert all(value > 0 for value in asdict(found).values())


@pytest.mark.parametrize("point", POINTS, ids=lambda point: point.name)
def test_each_published_run_is_met_within_20_percent(point):
    assert predict(point, constants()) == pytest.approx(point.published_s, rel=0.2)


def test_the_mean_error_is_within_10_percent_and_is_the_one_that_ranking_uses():
    errors = [abs(predict(point, constants()) / point.published_s - 1) for point in POINTS]
    assert sum(errors) / len(errors) < 0.1
    assert sum(errors) / len(errors) == pytest.approx(MODEL_ERROR, abs=0.005)


def test_every_warm_wan_figure_of_the_published_tables_is_there():
    figures = [
        157.8,
        23.6,
        16.8,
        4.3,
        23.6,
        25.9,
        28.9,
        27.2,
        2.4,
        7.8,
        0.68,
        4.35,
        68.4,
        65.1,
        59.0,
        15.6,
        0.28,
    ]
    assert [point.published_s for point in POINTS] == [*figures, 2.24, 27.9]
    assert len({point.name for point in POINTS}) == len(POINTS)


def test_leave_one_out_is_fitted_without_the_point():
    """A run that took ten times as long moves the fit, and not its own left-out prediction."""
    honest = residuals(POINTS, constants())[0]
    slow = [replace(POINTS[0], published_s=1578.0), *POINTS[1:]]
    assert residuals(slow, constants())[0].left_out_s == pytest.approx(honest.left_out_s)
    assert predict(POINTS[0], fit(slow)) > predict(POINTS[0], fit(POINTS))


def test_a_fit_recovers_constants_that_made_its_points():
    truth = replace(constants(), compute_efficiency=0.31, message_us=14.0, image_s=1.0)
    made = [replace(point, published_s=predict(point, truth)) for point in POINTS]
    assert asdict(fit(made)) == pytest.approx(asdict(truth), rel=1e-6)


def test_the_table_shows_residuals_and_what_is_left_out():
    lines = residual_table(POINTS, constants()).splitlines()
    assert len(lines) == 1 + len(POINTS) + 2
    assert lines[1].split()[0] == "157.80"
    assert lines[-2].startswith("mean absolute error ")
