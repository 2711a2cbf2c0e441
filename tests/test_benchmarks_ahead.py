"""The tables of `benchmarks.ahead`."""

from benchmarks.ahead.__main__ import HEADS, cells, medians


def row(kind, **more):
    known = {"kind": kind, "megabits": 20.0, "part": 0.1, "shuffle": 0.05, "loop": 1.0, "carried": 4e6}
    return {**known, "call": 2.0, "rows": 2000, "ahead": 0, **more}


def test_tables_have_medians_and_the_part_that_was_there_before():
    rows = [row("after", call=float(k)) for k in range(3)] + [row("ahead", ahead=k) for k in (1000, 1900, 2000)]
    after, ahead = (dict(zip(HEADS, cells(one), strict=True)) for one in medians(rows))
    assert (after["call s"], after["sent before"]) == ("1.000", "0%")
    assert (ahead["call s"], ahead["sent before"], ahead["MB by `tc`"]) == ("2.000", "95%", "4.0")
