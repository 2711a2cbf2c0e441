"""The sections of a printed plan: what stands in them is true of the loop as it runs, and no two of them disagree."""

import numpy as np
import pytest

import orion
from benchmarks.everyday.physics import heat_rod
from orion.inspect.text.alike import folded
from orion.inspect.text.names import as_shown

ROWS = 2_000_000


def told(function, *arguments, workers=2, backend="threads"):
    """The printed plan, each run of blanks as one."""
    with orion.session(backend, workers):
        return " ".join(orion.parallel_for(function).plan(*arguments).text().split())


# ---------------------------------------------------------------- order


def total(x):
    found = 0
    for i in range(len(x)):
        found += x[i]
    return found


def largest(x):
    found = x[0]
    for i in range(len(x)):
        found = max(found, x[i])
    return found


def histogram(idx, w, hist):
    for i in range(len(idx)):
        hist[idx[i]] += w[i]


SAME = "order as written: the result is that of the loop run from its first iteration to its last"
PARTS = "order as written, but floats in `{}` are combined from parts: their last digits may differ"


def test_float_sums_are_said_to_be_rounded_in_parts():
    assert PARTS.format("found") in told(total, np.ones(ROWS))


@pytest.mark.parametrize("function", [total, largest])
def test_sums_of_integers_and_maxima_are_those_of_the_loop_as_written(function):
    assert SAME in told(function, np.ones(ROWS, dtype=np.int64))
    if function is largest:
        assert SAME in told(function, np.ones(ROWS))


def running(x, y):
    found, last = 0.0, 0.0
    for i in range(len(x)):
        last = np.sin(last) + x[i]
        found += last
        y[i] = last
    return found


def test_a_serial_float_sum_is_that_of_the_loop_as_written():
    assert SAME in told(running, np.ones(ROWS), np.ones(ROWS))


def test_copies_of_float_arrays_are_said_to_be_rounded_in_parts():
    idx = np.zeros(ROWS, dtype=np.int64)
    assert PARTS.format("hist") in told(histogram, idx, np.ones(ROWS), np.zeros(100))
    assert SAME in told(histogram, idx, np.ones(ROWS, dtype=np.int64), np.zeros(100, dtype=np.int64))


# ---------------------------------------------------------------- each for


def of_rows(indptr, values, out):
    for i in range(len(out)):
        for k in range(indptr[i], indptr[i + 1]):
            out[i] += values[k]


def first_above(A, out):
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            if A[i, j] > 0.5:
                break
            out[i] += A[i, j]


def of_squares(A, out):
    for i in range(A.shape[0]):
        for j in range(i * i):
            out[i] += A[i, j]


def of_slices(indptr, values, out):
    for i in range(len(out)):
        for value in values[indptr[i] : indptr[i + 1]]:
            out[i] += value


@pytest.mark.parametrize(
    ("function", "arguments", "why"),
    [
        (of_rows, (np.arange(101), np.ones(100), np.ones(100)), "goes over a range that is read from `indptr`:"),
        (of_slices, (np.arange(101), np.ones(100), np.ones(100)), "goes over a range that is read from `indptr`:"),
        (first_above, (np.ones((50, 50)), np.ones(50)), "has a `break` in line "),
        (of_squares, (np.ones((7, 49)), np.ones(7)), "goes over a range whose bounds or step are not sums of"),
    ],
)
def test_one_reason_is_named_why_an_inner_loop_is_taken_to_be_serial(function, arguments, why):
    text = told(function, *arguments)
    assert why in text
    assert "affine" not in text


def until_small(x, y, rounds):
    for _ in range(rounds):
        change = 0.0
        for i in range(len(x)):
            change += abs(y[i] - x[i])
            y[i] = 0.5 * (x[i] + y[i])
        if change < 1e-3:
            break


def test_rounds_that_may_be_the_last_are_not_said_to_overlap():
    text = told(until_small, np.ones(ROWS), np.zeros(ROWS), 20)
    assert "overlap" not in text
    assert (
        "serial, around the loop; one round after another; carries dependences over y; `break` ends the loop early"
        in text
    )
    assert text.split("each for")[1].count("`break` ends the loop early") == 1


# ---------------------------------------------------------------- conflicts, and simpler strategies


def step(ratings, W, H):
    for (i, j), r in ratings:
        err = r - W[i] @ H[j]
        W[i] += err * H[j]
        H[j] += err * W[i]


def smear(A):
    for i in range(1, A.shape[0] - 1):
        for j in range(1, A.shape[1] - 1):
            A[i, j] = A[i - 1, j + 1] + A[i + 1, j - 1] + A[i, j] + A[i, j + 1]


def ratings_and_factors():
    rng = np.random.default_rng(1)
    keys = rng.integers(400, size=300_000), rng.integers(400, size=300_000)
    return orion.sparse(keys, rng.random(300_000)), rng.random((400, 8)), rng.random((400, 8))


def test_a_parallel_loop_with_dependences_is_not_parallel_by_itself():
    text = told(step, *ratings_and_factors())
    assert "simpler independent, or 1d along j no, as iterations with the same i meet in W, such as i=" in text
    assert "1d along i no, as iterations with the same j meet in H, such as" in text
    assert "why not" not in text


def test_what_a_parallel_nest_carries_is_no_contradiction():
    text = told(smear, np.ones((2_000, 2_000)))
    assert "not parallel by itself: carries dependences over A" in text
    assert "different iterations" not in text


# ---------------------------------------------------------------- considered, and not taken


def test_what_was_not_taken_is_better_than_what_was():
    idx = np.arange(ROWS) % 1000
    text = told(histogram, idx, np.ones(ROWS), np.zeros(1000))
    line = histogram.__code__.co_firstlineno + 1
    assert f"line {line} in parallel, if" not in text
    assert f"line {line} without copies of `hist`, if idx has no two equal elements" in text


def nearest(X, centers, labels, rounds):
    last = 0.0
    for _ in range(rounds):
        for i in range(len(X)):
            best, best_distance = 0, np.inf
            for c in range(len(centers)):
                distance = abs(X[i] - centers[c])
                if distance < best_distance:
                    best, best_distance = c, distance
            last = np.sin(last) + best
            labels[i] = last


def test_how_often_workers_would_meet_can_be_checked():
    text = told(nearest, np.ones(80_000), np.ones(300), np.ones(80_000), 5)
    assert "workers would meet 2 × 5 × 80,000 " in text
    assert "which costs more than it gains" in text
    assert "; independent" not in text


# ---------------------------------------------------------------- data


def test_threads_send_nothing():
    text = told(step, *ratings_and_factors())
    assert "sent, one worker per node" not in text
    assert "data workers share memory: no array is sent ratings each" in text
    assert "x read by every worker" in told(lookup, np.ones(ROWS), np.zeros(ROWS, dtype=np.int64), np.ones(ROWS))


def lookup(x, idx, out):
    for i in range(len(idx)):
        out[i] = np.sqrt(x[idx[i]])


def test_what_actors_would_send_is_for_one_worker_per_node():
    text = told(step, *ratings_and_factors(), backend="ray")
    assert "data array sent, one worker per node where it lives" in text
    assert "H 51.2 kB in blocks along axis 0 with j, which go from worker to worker" in text


def test_the_size_of_copies_is_that_of_one():
    text = told(histogram, np.zeros(ROWS, dtype=np.int64), np.ones(ROWS), np.zeros(1000))
    assert "hist in one place; each of the 8 blocks has a copy of 8.00 kB to add to" in text


# ---------------------------------------------------------------- sections of which the same is told


def test_sections_of_which_the_same_is_told_are_one():
    """Two arrays take turns: the loop is planned for each turn, in the rounds and after the last of them."""
    u = np.zeros(350_000)
    with orion.session("threads", 2):
        plan = orion.parallel_for(heat_rod).plan(u)
    assert len(plan.loops) == 4
    text, page = plan.text(), plan._repr_html_()
    sections = [part for part in text.split("\n\n") if "for i in range(1, len(u) - 1):" in part]
    assert len(sections) == len(set(sections)) == 2
    assert text.count("alike       1 more planned loop of this line is the same\n") == 2
    assert page.partition("<details><summary>The same as text")[0].count("<section>") == 2
    assert page.count("<p>1 more planned loop of this line is the same</p>") == 2
    assert page.count("<svg") <= 2
    assert len(plan.to_dict()["loops"]) >= 4


def test_sections_that_are_the_same_but_for_two_arrays_are_one():
    with orion.session("threads", 2):
        plan = orion.parallel_for(heat_rod).plan(np.zeros(350_000))
    loops = {at: as_shown(loop) for at, loop in enumerate(plan.loops)}
    said = {0: "u is read, new written", 1: "new is read, u written", 2: "u is read, new written", 3: "new is new"}
    first, last = folded(loops, lambda loop: said[next(at for at, one in loops.items() if one is loop)])
    assert (first.at, first.alike, last.at, last.alike) == (0, (("u", "new"), None), 3, ())
    assert first.words() == (
        "1 more planned loop of this line is the same with `u` and `new` exchanged",
        "1 more planned loop of this line is the same",
    )
