"""The protocol of flags, control rows and boxes, in all interleavings of two and three workers.

`docs/how-it-works/protocol.md` describes it.
"""

from pathlib import Path

import pytest

from tests.oracles.protocol import (
    ACQUIRE,
    BOTH,
    RELAXED,
    RELEASE,
    Case,
    Search,
    exchange,
    load,
    read,
    store,
    wait,
    write,
)
from tests.oracles.protocol_programs import Flags, Leaving, Parking

PAGE = Path(__file__).resolve().parents[1] / "docs" / "how-it-works" / "protocol.md"

LONG = ("posted", "run", "posted", "posted", "called", "posted")
TWICE, RUN, CALLED = ("posted", "posted"), ("posted", "run", "posted"), ("posted", "called", "posted")

CASES = {
    "two tiles": lambda weak="": Flags(2, weak).case("two_tiles"),
    "barrier of 2": lambda weak="": Flags(2, weak).case("meetings"),
    "barrier of 3": lambda weak="": Flags(3, weak).case("meetings"),
    "results of 2": lambda weak="": Flags(2, weak).case("rounds"),
    "results of 3": lambda weak="": Flags(3, weak).case("rounds"),
    "taking": lambda weak="": Flags(2, weak).case("walk_taking"),
    "parking of 2": lambda weak="": Parking(2, LONG, weak).case(),
    "parking of 3": lambda weak="": Parking(3, TWICE, weak).case(),
    "parking of 3, another run": lambda weak="": Parking(3, RUN, weak).case(),
    "parking of 3, called away": lambda weak="": Parking(3, CALLED, weak).case(),
    "one error": lambda weak="": Leaving((1,), weak).case(),
    "two errors": lambda weak="": Leaving((1, 2), weak).case(),
    "a signal": lambda weak="": Leaving((), weak).interrupted_case(),
}

TEETH = [
    *(
        (case, weak, "races")
        for weak in ("finish: store_release", "is_ready: load_acquire")
        for case in ("two tiles", "barrier of 2", "barrier of 3", "results of 2", "results of 3")
    ),
    ("results of 2", "one array of results", "races"),
    ("results of 3", "one array of results", "races"),
    ("taking", "take: load_acquire of done", "races"),
    ("taking", "take: compare_exchange", "races"),
    ("taking", "finish: store_release", "races"),
    *(
        (case, weak, what)
        for case in ("parking of 2", "parking of 3")
        for weak, what in (
            ("lead: release of compare_exchange", "races"),
            ("lead: no compare_exchange", "for ever"),
            ("park: nobody is woken", "for ever"),
            ("serve: load_acquire", "races"),
            ("serve: store_release", "races"),
            ("serve: leaves by a plain store", ""),
            ("serve: comes in by a plain store", ""),
            ("gather: load_acquire", "races"),
        )
    ),
    ("parking of 2", "lead: store_release", "races"),
    ("parking of 2", "serve: notes errors for who woke it", "another program"),
    ("parking of 3, called away", "lead: store_release", "races"),
    ("one error", "is_ready: no is_left", "for ever"),
    ("one error", "abort: of its own loop", "for ever"),
    ("one error", "serve: the box stays as it is", "for ever"),
    ("two errors", "tell_outside: no compare_exchange", ""),
    ("a signal", "gather: no leave_all", "for ever"),
]

SPARE = [
    ("taking", "take: orderings of begun"),
    ("parking of 2", "serve: compare_exchange"),
    ("parking of 2", "lead: acquire of compare_exchange"),
    ("two errors", "tell_outside: store_release"),
]
"""Orderings that carry nothing: what is read is ordered by `done`, by `POSTED` and `PARKED`, or by locks."""


@pytest.mark.parametrize("case", CASES)
def test_all_interleavings_are_right(case):
    search = Search(CASES[case]())
    assert search.run() == ""
    assert search.states > len(search.case.threads)


@pytest.mark.parametrize(("case", "weak", "what"), TEETH)
def test_a_weakened_place_is_found(case, weak, what):
    found = Search(CASES[case](weak)).run()
    assert found
    assert what in found.splitlines()[-1]


@pytest.mark.parametrize(("case", "weak"), SPARE)
def test_the_page_says_which_orderings_carry_nothing(case, weak):
    assert f"`{weak}`" in PAGE.read_text(encoding="utf-8")
    assert Search(CASES[case](weak)).run() == ""


# ------------------------------------------------------------ the checker itself


def writes_then_tells(order):
    yield write("data", 1)
    yield store("x", 1, order)


def reads_when_told(order):
    if (yield load("x", order)) == 1:
        assert (yield read("data")) == 1


def reads_and_lets_go(order):
    yield read("data")
    yield store("x", 1, order)


def writes_when_told(order):
    yield wait({"x": lambda found: found == 1}, order)
    yield write("data", 1)


def both_see_nothing(own, other, order):
    yield store(own, 1, order & RELEASE)
    found = yield load(other, order & ACQUIRE)
    before = yield exchange("blind", lambda blind: blind + (found == 0), RELAXED)
    assert before + (found == 0) < 2


def counts_up():
    yield store("x", 1, RELAXED)
    yield store("x", 2, RELAXED)


def never_sees_less():
    first = yield load("x", RELAXED)
    assert first <= (yield load("x", RELAXED))


def waits_for_one_of_them(least, most):
    yield wait({"x": lambda found: least <= found <= most}, RELAXED)


LITMUS = [
    ("message passing", ((writes_then_tells, RELEASE), (reads_when_told, ACQUIRE)), ""),
    ("message passing, relaxed store", ((writes_then_tells, RELAXED), (reads_when_told, ACQUIRE)), "races"),
    ("message passing, relaxed load", ((writes_then_tells, RELEASE), (reads_when_told, RELAXED)), "races"),
    ("read before write", ((reads_and_lets_go, RELEASE), (writes_when_told, ACQUIRE)), ""),
    ("read before write, relaxed store", ((reads_and_lets_go, RELAXED), (writes_when_told, ACQUIRE)), "races"),
    ("store buffering", ((both_see_nothing, "x", "y", BOTH), (both_see_nothing, "y", "x", BOTH)), "AssertionError"),
    ("coherence", ((counts_up,), (never_sees_less,)), ""),
    ("a value that stays", ((counts_up,), (waits_for_one_of_them, 2, 2)), ""),
    ("a value that passes", ((counts_up,), (waits_for_one_of_them, 1, 1)), "for ever"),
]


@pytest.mark.parametrize(("threads", "what"), [pytest.param(*row, id=name) for name, *row in LITMUS])
def test_litmus_tests_have_the_outcomes_of_release_and_acquire(threads, what):
    found = Search(Case(threads, {"x": 0, "y": 0, "blind": 0}, {"data": 0})).run()
    assert bool(found) == bool(what)
    assert what in found
