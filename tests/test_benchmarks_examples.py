"""The table of all examples at their defaults: which are run, and what is noted of a run."""

from __future__ import annotations

import sys

from rich.console import Console

from benchmarks.examples import Run, programs, table, timed
from tests.test_examples_options import PROGRAMS


def test_all_programs_are_run():
    assert sorted(programs()) == sorted(PROGRAMS)


def test_a_run_has_its_exit_code_its_last_line_and_its_longest_silence():
    code = "import sys, time; print('a', flush=True); time.sleep(1.0); print('b'); sys.exit(3)"
    run = timed([sys.executable, "-c", code], 60.0)
    assert (run.code, run.last) == (3, "b")
    assert 0.1 < run.silence <= run.seconds  # the first line may be read late
    assert not run.is_within(60.0)


def test_a_program_that_does_not_end_is_ended():
    run = timed([sys.executable, "-c", "import time; print('a', flush=True); time.sleep(60)"], 2.0)
    assert run.code < 0
    assert run.seconds < 30
    assert not run.is_within(60.0)


def test_the_table_has_a_row_for_each_example():
    found = {("a", "threads"): Run(1.25, 2.0, 0.5, 0, ""), ("a", "ray"): Run(7.0, 3.0, 2.5, 0, "")}
    console = Console(width=120)
    with console.capture() as printed:
        console.print(table(found, ("threads", "ray")))
    row = next(line for line in printed.get().splitlines() if "a.py" in line)
    assert [cell.strip() for cell in row.strip("│").split("│")] == ["a.py", "1.2", "2.0", "0.5", "7.0", "3.0", "2.5"]
