"""The simulations of `benchmarks.elastic`: by hand, and next to the pulls of a run."""

import pytest

import orion
from benchmarks import elastic
from benchmarks.elastic import Costs, many, pulls_of, simulated, step_for
from orion.simulate import Network


def test_workers_that_meet_wait_for_the_last():
    costs = Costs(1.0, 0.5, 0.25)
    assert simulated([[2, 1], [1, 2]], costs, False, 1.0) == (2 + 2 + 2 * 0.75, pytest.approx(1 - 3 / 5.5))
    assert simulated([[2, 1], [1, 2]], costs, False, 2.0)[0] == 2 * (2 + 2) + 2 * 0.75
    assert simulated([[2, 1], [2]], costs, False, 1.0)[0] == 2 + 0.75 + 1 + 0.5  # at the second nobody is met


def test_pulls_that_overlap_wait_for_what_was_posted_before():
    costs = Costs(1.0, 0.5, 0.0)
    uneven = [[3, 1], [1, 3]]
    assert simulated(uneven, costs, False, 1.0)[0] == 3 + 0.5 + 3 + 0.5
    # 3.5, 1.5; then 5.0 and 1.5 + 3 = 4.5, both later than 3.5: 5.0, 5.0; then the last pull
    assert simulated(uneven, costs, True, 1.0)[0] == 5.0 + 0.5


@pytest.mark.all("test_workers_that_meet_wait_for_the_last", "test_pulls_that_overlap_wait_for_what_was_posted_before")
@pytest.mark.parametrize("workers", [1, 2, 3])
def test_the_schedule_has_the_pulls_of_the_run(workers, monkeypatch):
    monkeypatch.setattr(elastic, "STEPS", 101)
    for overlaps in (False, True):
        policy = orion.elastic(sync_every=7, overlap=overlaps)
        with orion.session("threads", workers, force_parallel=True):
            arguments = elastic.arguments_for(policy, 1)
            elastic.train(*arguments)
            pulls = pulls_of(workers, 7, arguments)
        assert [len(own) for own in pulls] == [one.pulls for one in elastic.train.last_run.pulls]
        assert sum(map(sum, pulls)) == 101


def test_the_step_is_that_of_the_share_and_overlap_hides_what_fits():
    network = Network(1e9, 1e-4, 0.0)
    step = step_for(0.87, network)
    assert 1 - step / many("in turn", 4, step, 0.0, network) == pytest.approx(0.87)
    shares = [1 - step / many(how, 64, step, 0.0, network) for how in ("in turn", "packed", "tree", "parts")]
    assert shares == sorted(shares, reverse=True)
    hidden = many("overlapped", 64, 4 * step, 0.0, network)
    assert hidden == pytest.approx(4 * step)
    assert many("parts", 64, 4 * step, 0.0, network) > 1.3 * hidden
