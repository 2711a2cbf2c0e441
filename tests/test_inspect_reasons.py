"""`orion/reasons.md`: a section for every code, and examples that do what the section says."""

import linecache
import re
from pathlib import Path
from types import FunctionType

import numpy as np
import pytest

from orion.cost.sizes import Sizes
from orion.frontend.parse import parse_function
from orion.inspect.cli.guess import guess_types
from orion.plan.planner import plan_program
from orion.prepare import Options, Preparation
from orion.reasons import CODES

TEXT = (Path(__file__).parents[1] / "orion" / "reasons.md").read_text(encoding="utf-8")
SECTIONS = {part[:6]: part for part in re.split(r"^## ", TEXT, flags=re.MULTILINE)[1:]}
EXAMPLES = {code: re.findall(r"```python\n(.*?)```", part, flags=re.DOTALL) for code, part in SECTIONS.items()}
WITH_EXAMPLES = [code for code, found in EXAMPLES.items() if found]


def test_every_code_has_a_section_and_an_entry_in_the_list():
    assert list(SECTIONS) == list(CODES)
    for code, title in CODES.items():
        assert f"- [{code}](#{code.lower()}): {title}" in TEXT
        assert f"**{title[0].upper()}{title[1:]}.**" in SECTIONS[code]


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
    plan = plan_program(typed.variants, typed.types, typed.all_sizes(sizes))
    loops = [loop for loop in plan.loops if loop.is_written_by_user]
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


def test_most_codes_have_examples():
    assert set(CODES) - set(WITH_EXAMPLES) == {"ORN109", "ORN120", "ORN121", "ORN122", "ORN123"}
