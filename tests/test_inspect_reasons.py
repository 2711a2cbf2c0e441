"""`orion/reasons.md`: a section for every code, and examples that do what the section says."""

import linecache
import re
from dataclasses import replace
from pathlib import Path
from types import FunctionType

import numpy as np
import pytest

import orion
from orion.cli.guess import guess_types
from orion.cost.sizes import Sizes
from orion.frontend.parse import parse_function
from orion.inspect.data import plan_to_dict
from orion.inspect.html.html import plan_html
from orion.inspect.text.text import plan_text
from orion.plan.plan import Fill, Single
from orion.plan.planner import plan_program
from orion.prepare import Preparation
from orion.prepared_call import Options
from orion.reasons import CODES, Code, Reason, ReasonKind

TEXT = (Path(__file__).parents[1] / "orion" / "reasons.md").read_text(encoding="utf-8")
SECTIONS = {part[:6]: part for part in re.split(r"^## ", TEXT, flags=re.MULTILINE)[1:]}
EXAMPLES = {code: re.findall(r"```python\n(.*?)```", part, flags=re.DOTALL) for code, part in SECTIONS.items()}
WITH_EXAMPLES = [code for code, found in EXAMPLES.items() if found]


def test_every_code_has_a_section_that_begins_with_its_title():
    assert list(SECTIONS) == list(CODES)
    for code, row in CODES.items():
        assert SECTIONS[code].startswith(f"{code}\n\n**{row.title[0].upper()}{row.title[1:]}.**")


def codes(code, number):
    """The codes of the loops of one example that the user wrote."""
    text, name = EXAMPLES[code][number], f"<{code} {number}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    namespace = {"np": np}
    exec(compile(text, name, "exec"), namespace)
    (function,) = (value for value in namespace.values() if isinstance(value, FunctionType))
    types = guess_types(parse_function(function))
    typed = Preparation(function, Options()).typed(types)
    shapes = {name: (100,) * getattr(kind, "ndim", 0) for name, kind in types.items()}
    sizes = Sizes(shapes, dict.fromkeys(typed.parameters, 50), workers=4)
    plan = plan_program(typed.variants, typed.all_sizes(sizes))
    loops = [loop for loop in plan.loops if not isinstance(loop.form, Single | Fill)]
    assert all(loop.is_parallel for loop in loops) == (number == 1)
    told = {reason.code for loop in loops for reason in loop.reasons}
    return told | {one.reason.code for one in plan.considered if number == 0}


@pytest.mark.parametrize("code", WITH_EXAMPLES)
def test_the_first_example_gives_the_code(code):
    assert code in codes(code, 0)


@pytest.mark.parametrize("code", WITH_EXAMPLES)
def test_what_to_write_instead_is_parallel(code):
    found = codes(code, 1)
    assert code == "ORN101" or code not in found


def test_codes_that_claim_a_cure_have_examples():
    assert {code for code in CODES if code < "ORN120"} - set(WITH_EXAMPLES) == {"ORN109"}


def shift(W):
    for i in range(W.shape[0] - 1):
        W[i + 1] = 0.5 * W[i]


def scale(W):
    for i in range(W.shape[0]):
        W[i] = 0.5 * W[i]


@pytest.mark.parametrize("kind", ReasonKind)
def test_a_reason_of_any_code_is_shown_with_its_hint_by_every_view(kind, monkeypatch):
    monkeypatch.setitem(CODES, "ORN199", Code("something new", kind, "write it otherwise"))
    plan = orion.parallel_for(shift if kind is ReasonKind.BLOCKS else scale).plan(np.ones(100_000))
    loop = plan.function.loops[0]
    says = "not 9d: it is new" if kind is ReasonKind.RULES_OUT else "it is new"
    reason = Reason.of("ORN199", says, loop.nest.span)
    more = replace(plan.function, loops=(replace(loop, reasons=(*loop.reasons, reason)),))
    html = plan_html(more, [None]).split("<summary>")[0]
    for view in (plan_text(more), html):
        told = re.sub(r"<[^>]*>", "", view)
        for part in ("it is new", "ORN199", "write it otherwise"):
            assert part in told
    shown = plan_to_dict(more)["loops"][0]["reasons"][-1]
    wanted = {"kind": kind, "code": "ORN199", "title": "something new", "message": says, "hint": "write it otherwise"}
    assert wanted.items() <= shown.items()


def running_sum(d, a):
    t = 0.0
    for i in range(d.shape[0]):
        t = t + d[i]
        a[i] = t


def running_least(d, a):
    t = 1e9
    for i in range(d.shape[0]):
        t = min(t, d[i])
        a[i] = t


def population(d, a):
    t = 0.1
    for i in range(d.shape[0]):
        t = d[i] * t * (1.0 - t)
        a[i] = t


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (running_sum, r"would take longer than the loop as written, except where `d\.shape\[0\] >= \d+` \[ORN120\]"),
        (running_least, r"would take longer than the loop as written, as an iteration does so little \[ORN120\]"),
        (population, r"`t` passes a value from one iteration to the next \[ORN104\]"),
    ],
)
def test_where_costs_keep_a_loop_serial_the_first_reason_says_so(function, why):
    decorated = orion.parallel_for(function)
    with orion.session("threads", 2):
        plan = decorated.plan(np.ones(1000), np.ones(1000))
        assert re.search(f"serial because in lines .*{why}", " ".join(str(plan).split("\n\n")[0].split()))
        with pytest.warns(orion.SerialLoopWarning, match=f"is serial because .*{why}"):
            decorated(np.ones(1000), np.ones(1000))


def by_two_places(x, y, idx):
    for i in range(y.shape[0]):
        y[i] = 0.5 * x[idx[0]]
        x[idx[1]] = y[i]


def in_turns(x, idx):
    for t in range(5):
        for i in range(idx.shape[0]):
            x[idx[i]] = 0.5 * x[idx[i]] + t


@pytest.mark.parametrize(
    ("function", "arguments", "variable"),
    [(by_two_places, (np.ones(9), np.ones(9), np.zeros(9, int)), "i"), (in_turns, (np.ones(9), np.zeros(9, int)), "t")],
)
def test_what_iterations_have_in_common_is_told_of_the_arrays_that_keep_them_in_order(function, arguments, variable):
    """`y[i]` is another element in each iteration of `by_two_places`, `x[idx[i]]` in each of the inner loop."""
    with orion.session("threads", 2):
        reasons = orion.parallel_for(function).plan(*arguments).reasons
    (told,) = {reason.message for reason in reasons if reason.code == "ORN131"}
    assert told == f"it is not inspected: every iteration of `{variable}` may touch the same elements of `x`"
