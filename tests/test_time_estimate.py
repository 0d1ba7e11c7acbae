"""The remaining time of staged work, with a clock of its own."""

import itertools

import pytest

from acnn.progress import TimeEstimate, begin_stage, expect_stages
from acnn.runs.cost import match_stages


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


def run(expected, actual, step=0.25, reported=True, first="starting"):
    """(time, remaining time that is shown, remaining time in truth) while stages take their actual times."""
    clock = Clock()
    estimate = TimeEstimate(clock)
    estimate.begin(first)
    estimate.expect(expected)
    end = clock.now + sum(actual.values())
    for name, seconds in actual.items():
        estimate.begin(name)
        began = clock.now
        while clock.now < began + seconds - 1e-9:
            clock.now += step
            if reported:
                estimate.update(round(1e4 * (clock.now - began) / seconds), 10_000)
            yield clock.now, estimate.seconds_left(), end - clock.now


STAGES = {"reading": 1.0, "operators of A": 20.0, "operators of B": 10.0, "refinement": 9.0}


def test_work_that_takes_as_long_as_expected():
    for _, shown, truth in run(STAGES, STAGES, first="reading"):
        assert shown == pytest.approx(truth, abs=0.5)


@pytest.mark.parametrize(
    ("factor", "reported"), [(0.4, True), (1, True), (3, True), (8, True), (1, False), (3, False), (8, False)]
)
@pytest.mark.parametrize("sizes", [(600, 600), (2500, 5000), (20_000, 3000)])
def test_at_half_time_the_estimate_is_within_a_factor_of_two(factor, reported, sizes):
    expected = match_stages(sizes)
    shares = itertools.cycle((1.3, 0.8, 1.0))
    actual = {name: factor * seconds * next(shares) for name, seconds in expected.items()}
    total = sum(actual.values())
    late = [(shown, truth) for _, shown, truth in run(expected, actual, total / 200, reported) if truth <= total / 2]
    shown, truth = late[0]
    assert 0.5 < shown / truth < 2


def test_it_never_ends_before_the_work():
    slow = {name: 5 * seconds for name, seconds in STAGES.items()}
    shown = [left for _, left, truth in run(STAGES, slow, reported=False) if truth > 0]
    assert min(shown) > 0


def test_stages_that_are_skipped_or_not_expected():
    clock = Clock()
    estimate = TimeEstimate(clock)
    assert estimate.seconds_left() is None
    estimate.expect(STAGES)
    estimate.begin("something else")
    assert estimate.seconds_left() == pytest.approx(sum(STAGES.values()))
    estimate.begin("refinement")  # what comes before it in the plan is not waited for
    assert estimate.seconds_left() == pytest.approx(STAGES["refinement"])


def test_compilation_does_not_count():
    clock = Clock()
    estimate = TimeEstimate(clock)
    estimate.expect(STAGES)
    estimate.begin("reading")
    before = estimate.seconds_left()
    estimate.pause()
    clock.now += 60
    assert estimate.seconds_left() == pytest.approx(before)
    estimate.go_on()
    clock.now += 0.5
    assert estimate.seconds_left() == pytest.approx(before - 0.5)


def test_expected_times_reach_the_display_only_if_it_takes_them():
    expect_stages(None, STAGES)
    expect_stages(lambda done, total: None, STAGES)

    class Display(TimeEstimate):
        def __call__(self, done, total):
            self.update(done, total)

        def stage(self, name):
            self.begin(name)
            return self

    display = Display()
    expect_stages(display, STAGES)
    begin_stage(display, "refinement")
    assert display.seconds_left() == pytest.approx(9, abs=0.1)


def test_stages_of_a_match_are_those_that_are_begun():
    assert list(match_stages([1000, 1000])) == [
        *("reading", "working copies", "operators of B", "network output of B", "operators of A"),
        *("network output of A", "refinement", "fit", "lifting", "writing"),
    ]
    assert "fit" not in match_stages([1000])
    assert "refinement" not in match_stages([1000], refined=False)
    assert {"operators", "network output"} <= set(match_stages([1000]))
