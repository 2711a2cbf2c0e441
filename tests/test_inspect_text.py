"""Plans as text: golden files (ORION_WRITE_GOLDEN=1 writes them anew), and the rules that every text keeps."""

import io
import os
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import orion
from orion.inspect.text.conflicts import conflicts_of
from orion.inspect.text.telling import blockers
from orion.inspect.text.text import WIDTH, plan_text, quoted
from orion.inspect.text.words import bytes_in_words, lines_in_words
from orion.printable import printable
from orion.source import SourceText, Span
from tests.inspect_loops import CASES, plan_of, search, several, sgd_epoch, shift, smooth

GOLDEN = Path(__file__).parent / "golden" / "plans"


@pytest.fixture(autouse=True)
def at_the_root(monkeypatch):
    """Places are shown relative to the working directory."""
    monkeypatch.chdir(Path(__file__).parents[1])


@pytest.mark.parametrize("function", CASES, ids=lambda function: function.__name__)
def test_golden(function):
    text = plan_text(plan_of(function)) + "\n"
    path = GOLDEN / f"{function.__name__}.txt"
    if os.environ.get("ORION_WRITE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("function", CASES, ids=lambda function: function.__name__)
@pytest.mark.parametrize("symbolic", [False, True])
def test_lines_are_short_and_have_no_blanks_at_their_ends(function, symbolic):
    lines = plan_text(plan_of(function, symbolic=symbolic)).splitlines()
    assert max(map(len, lines)) <= WIDTH
    assert all(line == line.rstrip() and "\u00a0" not in line for line in lines)


def test_many_pairs_in_the_same_iterations_are_one_line():
    plan = plan_of(sgd_epoch)
    pairs = [dependence for dependence in plan.loops[0].dependences if dependence.array == "H"]
    lines = [line for line in plan_text(plan).splitlines() if "H  iterations with the same j" in line]
    assert len(pairs) > 3
    assert len(lines) == 1


def test_every_pair_that_blocks_a_serial_loop_is_named():
    loop = plan_of(shift).loops[0]
    told = {span for blocker in blockers(loop, conflicts_of(loop)) for span in blocker.spans}
    assert told == {access.span for d in loop.dependences for access in (d.source, d.sink)}


def test_the_same_help_is_given_once():
    text = plan_text(plan_of(search))
    assert text.count("ORN101") == 4  # at two conflicts, in the first lines, and in the tree
    assert text.count("the later iteration needs what the earlier one wrote") == 1


def test_an_early_exit_comes_last():
    """Without the conflicts before it, it may be no obstacle."""
    loop = plan_of(search).loops[0]
    assert [blocker.code for blocker in blockers(loop, conflicts_of(loop))] == ["ORN101", "ORN101", "ORN110"]


def test_one_worker_moves_nothing():
    alone = plan_text(plan_of(sgd_epoch, workers=1))
    assert "workers share memory" not in alone
    assert "which go from worker to worker" in alone


def test_unknown_sizes_are_said_to_be_unknown():
    text = plan_text(plan_of(smooth, symbolic=True))
    assert "iterations  unknown (no sizes given), in 8 × 8 tiles of i × j" in text


def test_statements_between_loops_are_no_serial_loop():
    text = plan_text(plan_of(several))
    assert text.startswith("several(a, b, n): 2 loops, serial because in lines 109, 110 blocks of")
    assert "\n   108  " not in text  # little of the work


def test_a_triangular_nest_has_at_most_as_many_iterations_as_its_box():
    text = plan_text(plan_of(next(f for f in CASES if f.__name__ == "prefix")))
    assert "iterations  at most " in text


def test_carets_stand_under_what_they_are_about():
    source = SourceText("f.py", 7, ("    a[i + 1] = a[i]", "        b[i] = 0"))
    spans = [Span("f.py", 7, 15, 7, 19), Span("f.py", 7, 4, 7, 12), Span("f.py", 8, 8, 8, 12)]
    assert list(quoted(spans, source)) == [
        "   7 | a[i + 1] = a[i]",
        "     | ^^^^^^^^   ^^^^",
        "   8 |     b[i] = 0",
        "     |     ^^^^",
    ]


def test_a_place_that_is_not_in_the_source_is_not_quoted():
    assert list(quoted([Span("f.py", 99, 0, 99, 1)], SourceText("f.py", 7, ("a = 1",)))) == []


def test_a_plan_without_loops():
    empty = replace(plan_of(shift), loops=())
    assert plan_text(empty) == "shift(W): no loop to share out"


@pytest.mark.parametrize(
    ("size", "words"),
    [(None, "unknown"), (0, "nothing"), (1, "1 byte"), (999, "999 bytes"), (1000, "1.00 kB"), (9_994, "9.99 kB"),
     (9_999, "10.0 kB"), (999_499, "999 kB"), (999_500, "1.00 MB"), (123_456_789_000, "123 GB"),
     (5 * 10**15, "5000 TB")],
)  # fmt: skip
def test_amounts(size, words):
    assert bytes_in_words(size) == words


@pytest.mark.parametrize(
    ("lines", "words"),
    [([3], "line 3"), ([3, 4], "lines 3, 4"), ([5, 3, 4, 3], "lines 3–5"), ([1, 3, 4, 5, 9], "lines 1, 3–5, 9")],
)
def test_line_numbers(lines, words):
    assert lines_in_words(lines) == words


@pytest.mark.parametrize(
    ("encoding", "text"),
    [("utf-8", "950 µs × é"), ("latin-1", "950 µs × é"), ("ascii", "950 us x \\xe9"), ("cp1251", "950 us x \\xe9")],
)
def test_texts_are_printed_in_the_characters_that_there_are(monkeypatch, encoding, text):
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    monkeypatch.setattr(sys, "stdout", stream)
    assert printable("950 µs × é") == text


@orion.parallel_for
def halve(a):
    for i in range(a.shape[0]):
        a[i] = 0.5 * a[i]


def test_a_plan_is_printed_in_ascii(monkeypatch):
    with orion.session("threads", 2):
        assert " µs" in halve.explain(np.zeros(100))
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="ascii"))
        assert " us" in halve.explain(np.zeros(100))
        assert halve.explain(np.zeros(100)).isascii()
