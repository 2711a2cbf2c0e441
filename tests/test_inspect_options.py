"""What options would change about a plan: told where it is true, in every view, and as a plan made with the option has
it."""

import html
import json
import re

import numpy as np
import pytest

import orion
from orion.inspect.text.text import plan_text
from orion.inspect.tree.options import FORCE, INSPECT

WORKERS = 4
SMALL, LARGE, HUGE = 40, 400_000, 4_000_000
LOOKED = "`idx` is looked at: iterations that touch different elements of `x` run at once"
IF_FASTER = f"{LOOKED}, where that is predicted to be faster"
AT_ONCE = f"{LOOKED}, from the first call on"


def doubled(x, y, idx):
    for i in range(x.shape[0]):
        x[i] = 2.0 * x[i]


def chained(x, y, idx):
    for i in range(1, x.shape[0]):
        x[i] = np.sqrt(x[i - 1]) + y[i] * x[i - 1] ** 2


def scattered(x, y, idx):
    for i in range(x.shape[0]):
        x[idx[i]] = x[idx[i]] * 0.5 + y[i]


def by_elements(x, y, idx):
    for j in idx:
        x[j] = x[j] * x[j] + 1.0


def several(x, y, idx):
    for i in range(y.shape[0]):
        y[i] = y[i] + 1.0
    for i in range(x.shape[0]):
        x[idx[i]] = x[idx[i]] * 0.5 + y[i]
    for i in range(1, y.shape[0]):
        y[i] = y[i - 1] * y[i - 1] + y[i]


def swept(x, y, idx):
    for _t in range(10):
        for i in range(1, x.shape[0] - 1):
            x[i] = 0.3 * (x[i - 1] + x[i] + x[i + 1])


def statement(x, y, idx):
    x += y


def counted_down(x, y, idx):
    k = x.shape[0] - 1
    while k > 0:
        x[k] = x[k - 1] * x[k - 1]
        k -= 1


TABLE = {
    (doubled, SMALL): [(FORCE, 1, "parallel, on 4 workers")],
    (doubled, HUGE): [],
    (chained, SMALL): [],
    (chained, LARGE): [],
    (scattered, SMALL): [(FORCE, 1, AT_ONCE)],
    (scattered, LARGE): [(INSPECT, 1, IF_FASTER), (FORCE, 1, AT_ONCE)],
    (by_elements, SMALL): [(FORCE, 1, AT_ONCE)],
    (by_elements, LARGE): [(INSPECT, 1, IF_FASTER), (FORCE, 1, AT_ONCE)],
    (several, SMALL): [(FORCE, 1, "parallel, on 4 workers"), (FORCE, 3, AT_ONCE)],
    (several, LARGE): [(INSPECT, 3, IF_FASTER), (FORCE, 3, AT_ONCE)],
    (swept, SMALL): [(FORCE, 1, "parallel, wavefront, 8×8 tiles, on 4 workers")],
    (swept, LARGE): [],
    (statement, SMALL): [(FORCE, 1, "parallel, on 4 workers")],
    (statement, HUGE): [],
    (counted_down, SMALL): [],
}
NAMES = [f"{function.__name__}-{size}" for function, size in TABLE]


def arguments(size):
    """Arrays of so many elements; of subscripts with repeated elements, in no order."""
    rng = np.random.default_rng(1)
    return rng.random(size), rng.random(size), rng.integers(0, size, size)


def planned(function, size, *, force=False, **options):
    with orion.session("threads", WORKERS, force_parallel=force):
        return orion.parallel_for(function).plan(*arguments(size), **options)


def told(plan, function):
    first = function.__code__.co_firstlineno
    return [(one["option"], one["line"] - first, one["how"]) for one in plan.to_dict()["tree"]["options"]]


@pytest.mark.parametrize(("function", "size"), TABLE, ids=NAMES)
def test_what_options_would_change(function, size):
    assert told(planned(function, size), function) == TABLE[function, size]


@pytest.mark.parametrize(("function", "size"), TABLE, ids=NAMES)
def test_a_plan_made_with_force_parallel_agrees(function, size):
    said = {line: how for option, line, how in TABLE[function, size] if option == FORCE}
    before, after = planned(function, size), planned(function, size, force=True)
    first, strategies = function.__code__.co_firstlineno, _strategies(after)
    assert not told(after, function)
    for line, how in _hows(after).items():
        words = said.get(line - first, "")
        if words == AT_ONCE:
            assert strategies[line] == "inspected"
        elif words:
            assert words == f"{how}, on {_workers(after)[line]} workers"
        else:
            assert _workers(after).get(line, 1) <= _workers(before).get(line, WORKERS)
            assert strategies.get(line) != "inspected"


@pytest.mark.parametrize(("function", "size"), TABLE, ids=NAMES)
def test_a_plan_made_with_inspect_agrees(function, size):
    said = {line for option, line, _ in TABLE[function, size] if option == INSPECT}
    before, after = planned(function, size), planned(function, size, inspect=True)
    first = function.__code__.co_firstlineno
    assert not [one for one in told(after, function) if one[0] == INSPECT]
    for line, how in _hows(after).items():
        if line - first in said:
            assert how != _hows(before)[line]
            assert _looks(after)[line]
        else:
            assert how == _hows(before)[line]


@pytest.mark.parametrize(
    "setting", [{"workers": 1}, {"workers": 1, "force_parallel": True}], ids=["one worker", "one worker, forced"]
)
def test_nothing_is_told_where_there_are_no_others(setting):
    with orion.session("threads", **setting):
        plan = orion.parallel_for(several).plan(*arguments(SMALL))
    assert not told(plan, several)


def test_every_view_has_it():
    plan = planned(several, SMALL)
    line = several.__code__.co_firstlineno
    text = " ".join(plan_text(plan.function, tree=plan._shown).split())
    page = html.unescape(re.sub("<[^>]*>", " ", plan._repr_html_().partition("The same as text")[0]))
    assert f"options force_parallel=True line {line + 1} parallel, on 4 workers" in text
    assert f"force_parallel=True line {line + 3} {AT_ONCE}" in text
    assert f"force_parallel=True line {line + 1} parallel, on 4 workers" in " ".join(page.split())
    assert [one["line"] - line for one in json.loads(plan.to_json())["tree"]["options"]] == [1, 3]


def test_the_second_plan_is_made_when_a_view_is_drawn(monkeypatch):
    import orion.pipeline

    made = []
    program = orion.pipeline.plan_program
    monkeypatch.setattr(orion.pipeline, "plan_program", lambda *given: made.append(given) or program(*given))
    plan = planned(doubled, SMALL)
    assert len(made) == 1
    assert str(plan) == str(plan)
    assert len(made) == 2
    assert str(planned(doubled, HUGE))
    assert len(made) == 3


def test_without_sizes_it_is_told_what_may_be_inspected(capsys, tmp_path):
    from orion.cli.cli import main

    path = tmp_path / "loops.py"
    path.write_text(
        "import orion\n\n\n@orion.parallel_for\ndef f(x, idx):\n    for i in range(x.shape[0]):\n"
        "        x[idx[i]] = x[i] + 1.0\n"
    )
    main(["explain", str(path)])
    assert f"inspect=True line 6 {IF_FASTER}" in " ".join(capsys.readouterr().out.split())


def _hows(plan):
    return {one.line: one.how for one in plan.tree().lines}


def _workers(plan):
    return {loop.nest.span.line: loop.runs_on for loop in plan.loops}


def _strategies(plan):
    return {loop.nest.span.line: str(loop.strategy) for loop in plan.loops}


def _looks(plan):
    """Whether what was found has another plan run the loop, or is told to gain too little."""
    codes = {"ORN128", "ORN129"}
    return {loop.nest.span.line: bool(codes & {one.code for one in loop.reasons}) for loop in plan.loops}
