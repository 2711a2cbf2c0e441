"""`docs/will-it-work.md` says of twenty shapes of loops what the library does with them."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest

import orion
from docs.shapes import PAGE, SHAPES, outcome, written

LOOPS = [loop for shape in SHAPES for loop in (shape.loop, shape.instead) if loop]


def test_the_page_has_what_the_plans_say():
    page = PAGE.read_text(encoding="utf-8")
    assert written(page) == page, "`python docs/shapes.py` rewrites the page"


def test_there_are_twenty_and_each_has_a_row_and_a_section():
    page = PAGE.read_text(encoding="utf-8")
    assert len(SHAPES) == 20
    assert len(re.findall(r"^\| \[", page, re.MULTILINE)) == 20
    for shape in SHAPES:
        assert f"\n### {shape.name}\n" in page


def test_what_to_write_instead_is_parallel():
    for shape in SHAPES:
        if shape.instead is not None:
            assert outcome(shape.instead).startswith("parallel")


def test_what_is_not_parallel_has_something_to_write_instead():
    for shape in SHAPES:
        assert shape.instead is not None or outcome(shape.loop).startswith("parallel"), shape.name


@pytest.mark.parametrize("loop", LOOPS, ids=lambda loop: loop.function.__name__)
@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
def test_a_call_gives_what_python_gives_or_is_refused(loop):
    mine, expected = loop.arguments(loop.small), loop.arguments(loop.small)
    function = orion.parallel_for(loop.function)
    with orion.session(workers=2, force_parallel=True):
        if outcome(loop) == "refused":
            with pytest.raises(orion.UnsupportedLoopError):
                function(*mine)
            return
        result = function(*mine)
    agree((result, *mine), (loop.function(*expected), *expected))


def agree(found, expected):
    for one, other in zip(found, expected, strict=True):
        if isinstance(other, np.ndarray):
            np.testing.assert_allclose(one, other, rtol=1e-12)
        elif isinstance(other, float):
            assert one == pytest.approx(other, rel=1e-12)
        else:
            assert one == other


def test_loops_as_they_are_warn():
    (shape,) = [shape for shape in SHAPES if shape.name == "Dict"]
    with warnings.catch_warnings(record=True) as caught, orion.session(workers=2):
        warnings.simplefilter("always")
        orion.parallel_for(shape.loop.function)(*shape.loop.arguments(shape.loop.small))
    assert orion.SerialLoopWarning in [one.category for one in caught]
