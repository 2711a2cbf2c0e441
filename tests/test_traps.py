"""Every trap gives the serial result on 1, 2 and 4 workers, by a legal parallel plan or serially with a reason."""

import inspect
import os
import warnings
from pathlib import Path
from textwrap import wrap

import numpy as np
import pytest

import orion
from tests.trap_loops import STORIES, TRAPS, column_sums, shifted_view
from tests.trials import worker_counts

GOLDEN = Path(__file__).parent / "golden" / "traps.txt"


@pytest.mark.parametrize("function", TRAPS, ids=lambda f: f.__name__)
def test_trap(function):
    make, strategies = TRAPS[function]
    expected = make()
    returned = function(*expected)
    compiled = orion.parallel_for(function)
    with orion.session(workers=4, force_parallel=True):
        plan = compiled.plan(*make())
    assert [loop.strategy for loop in plan.loops] == strategies
    assert all(loop.reasons for loop in plan.loops if not loop.is_parallel)
    plan.check()
    for workers in worker_counts(1, 2, 4):
        arguments = make()
        with orion.session(workers=workers, force_parallel=True), warnings.catch_warnings():
            warnings.simplefilter("ignore", orion.SerialLoopWarning)
            assert compiled(*arguments) == returned
        for mine, theirs in zip(arguments, expected, strict=True):
            np.testing.assert_array_equal(mine, theirs)


def elements():
    """Keys and values of a sparse array whose rows share columns."""
    rng = np.random.default_rng(0)
    keys = rng.integers(0, 300, 20_000), rng.integers(0, 5, 20_000)
    return keys, rng.integers(-5, 6, 20_000).astype(np.float64)


def test_two_views_of_one_array_are_seen():
    """`a` and `b` overlap: the write of `a[i + 1]` is read as `b[i + 1]` in the next iteration."""
    block = np.ones(100)
    with pytest.raises(orion.AliasError, match="share memory"):
        orion.parallel_for(shifted_view)(block[:50], block[25:75])
    np.testing.assert_array_equal(block, np.ones(100))


def test_elements_whose_rows_share_columns_lose_no_update():
    """Row by row in parallel, two rows could update one column at once."""
    summed = orion.parallel_for(column_sums)
    keys, values = elements()
    sums = np.zeros(5)
    with orion.session(workers=4, force_parallel=True):
        assert summed.plan(orion.sparse(keys, values), sums).strategy == "1d"
        summed(orion.sparse(keys, values), sums)
    np.testing.assert_array_equal(sums, np.bincount(keys[1], values, 5))


# ---------------------------------------------------------------- the plans, to be read


HEAD = """\
How Orion runs loops that others get wrong: the plan of each, for 4 workers (used whatever the sizes).

Where a plan says "parallel", it was proved that no two iterations that run at the same time need each other, or
that the loop is run in another order which keeps every dependence. Where it says "serial", the plan says what stands
in the way. The result is that of plain Python in every case."""


def arguments_of(function):
    if function is column_sums:
        return orion.sparse(*elements()), np.zeros(5)
    return (np.ones(50), np.ones(50)) if function is shifted_view else TRAPS[function][0]()


def story(function):
    """A trap as a newcomer reads it: what goes wrong elsewhere, the source, the plan."""
    number, words = STORIES[function]
    told = f"elsewhere: {words}" if isinstance(number, int) else words
    title = "\n".join(wrap(f"{number}. {function.__name__}; {told}", 100))
    plan = orion.parallel_for(function).plan(*arguments_of(function))
    return f"{'=' * 100}\n{title}\n{'=' * 100}\n\n{inspect.getsource(function)}\n{plan}\n"


def test_every_trap_is_told():
    numbers = [number for number, _ in STORIES.values() if isinstance(number, int)]
    assert numbers == list(range(1, 21))
    assert STORIES.keys() == {*TRAPS, column_sums, shifted_view}


def test_the_plans_of_all_traps(monkeypatch):
    """`tests/golden/traps.txt`; ORION_WRITE_GOLDEN=1 writes it anew."""
    monkeypatch.chdir(Path(__file__).parents[1])  # places are shown relative to the working directory
    with orion.session(workers=4, force_parallel=True):
        text = "\n\n".join([HEAD, *map(story, STORIES)])
    if os.environ.get("ORION_WRITE_GOLDEN"):
        GOLDEN.write_text(text, encoding="utf-8")
    assert text == GOLDEN.read_text(encoding="utf-8")
