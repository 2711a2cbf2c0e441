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
