"""What is printed for programs that are refused, applied to them: they run then, and give what Python gives."""

from __future__ import annotations

import ast
import contextlib
import copy
import textwrap
import warnings
from pathlib import Path

import numpy as np
import pytest

import orion
from tests.alike import alike
from tests.cured_programs import ACCEPTED, CURED, OUTSIDE, VALUES, Cured
from tests.hint_sites import Site, all_sites, frames_of
from tests.loop_text import defined
from tests.untried_cures import ELSEWHERE, NO_CURE, NOT_TRIED


def function_of(body: str):
    """The function with this body, and its arguments."""
    mentioned = {
        node.id
        for node in ast.walk(ast.parse(f"def f():\n{textwrap.indent(body, '    ')}"))
        if isinstance(node, ast.Name)
    }
    params = [name for name in VALUES if name in mentioned]
    text = f"def f({', '.join(params)}):\n" + textwrap.indent(body, "    ") + "\n"
    return defined(text, **OUTSIDE), {name: VALUES[name]() for name in params}


def result_of(function, given):
    """What a function returns, and its arguments afterwards."""
    arguments = copy.deepcopy(given)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        returned = function(**arguments)
    return {**arguments, "return": returned}


def refusal(one: Cured) -> orion.OrionError:
    function, given = function_of(one.program)
    with pytest.raises(orion.OrionError) as caught:
        orion.parallel_for(function).plan(**given)
    return caught.value


def help_of(error: BaseException) -> str:
    return str(error).partition("  help: ")[2]


def wanted(one: Cured, cured, given):
    """What comes out: that of the program as it was, where Python runs it, else that of the cured one."""
    if not one.is_other:
        with contextlib.suppress(Exception):
            return result_of(*function_of(one.program))
    return result_of(cured, given)


def check(one: Cured):
    assert one.printed in help_of(refusal(one))
    cured, given = function_of(one.cured)
    want = wanted(one, cured, given)
    compiled = orion.parallel_for(cured)
    compiled.plan(**given)
    found = result_of(compiled, given)
    for name in want.keys() & found.keys():
        if want[name] is None:
            assert found[name] is None
        else:
            alike(found[name], want[name], rtol=1e-9)


@pytest.mark.parametrize("one", CURED, ids=lambda one: one.printed)
def test_a_cure_that_is_printed_cures(one):
    check(one)


@pytest.mark.parametrize("body", ACCEPTED)
def test_what_was_refused_is_planned_and_gives_what_python_gives(body):
    function, given = function_of(body)
    compiled = orion.parallel_for(function)
    compiled.plan(**given)
    want, found = result_of(function, given), result_of(compiled, given)
    for name, value in want.items():
        assert (value is None and found[name] is None) or alike(found[name], value, rtol=1e-9) is None


def test_hashes_have_the_bits_of_pythons():
    function, given = function_of(ACCEPTED[11])
    want, found = result_of(function, given), result_of(orion.parallel_for(function), given)
    np.testing.assert_array_equal(found["u"], want["u"])
    assert want["u"].max() > 2**63


def applied() -> dict[Site, str]:
    """The places of the source whose cures are applied here, each with one of its programs."""
    found, sites = {}, all_sites()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ORION_FULL_TRACEBACK", "1")
        for one in CURED:
            error = refusal(one)
            frames = frames_of(error)
            said = help_of(error).splitlines()[0] if help_of(error) else ""
            saying = [site for site in sites if site.says(said)]
            passed = [site for site in saying if site.is_in(frames)]
            found |= dict.fromkeys(passed or (saying if len(saying) == 1 else ()), one.printed)
    return found


def count(found) -> str:
    every = all_sites()
    return (
        f"{len(found)} of {len(every)} texts that say what to write are applied by programs, "
        f"{len(ELSEWHERE)} by other tests; {len(NO_CURE)} can not be applied, {len(NOT_TRIED)} are not tried"
    )


def test_every_text_is_applied_or_listed():
    """Prints how many are (`-s`). A text that is new, or has another wording, is to be applied or listed."""
    found = applied()
    keys, every = {site.key for site in found}, {site.key for site in all_sites()}
    print(f"\n{count(keys)}")
    listed = NO_CURE.keys() | ELSEWHERE.keys() | NOT_TRIED
    assert every - keys - listed == set()
    assert listed - every == set(), "listed, and no longer there"
    assert listed & keys == set(), "listed, and applied"


def test_what_is_applied_elsewhere_is_a_test():
    for place in ELSEWHERE.values():
        file, _, name = place.partition("::")
        assert f"def {name}(" in (Path(__file__).parent / file).read_text()


def test_most_are_applied():
    assert len(CURED) > 180
    assert len(NOT_TRIED) < 60


if __name__ == "__main__":
    print(count({site.key for site in applied()}))
