"""What is printed for programs that are refused, applied to them: they run then, and give what Python gives."""

from __future__ import annotations

import ast
import contextlib
import inspect
import textwrap
import warnings
from pathlib import Path

import numpy as np
import pytest

import orion
from orion.arrays.accumulator import Accumulator
from orion.arrays.buffer import Buffer
from orion.arrays.replica import Replicated
from tests.alike import alike
from tests.cured_programs import ACCEPTED, CURED, OUTSIDE, VALUES, Cured
from tests.hint_sites import Site, all_sites, frames_of
from tests.loop_text import defined
from tests.untried_cures import ELSEWHERE, NO_CURE


def function_of(body: str):
    """The function with this body, or that the text is, and its arguments."""
    if body.startswith(("def f(", "async def f(", "f = ")):
        function = defined(body + "\n", **OUTSIDE)
        return function, made(name for name in VALUES if name in inspect.signature(function).parameters)
    mentioned = {
        node.id
        for node in ast.walk(ast.parse(f"def f():\n{textwrap.indent(body, '    ')}"))
        if isinstance(node, ast.Name)
    }
    params = [name for name in VALUES if name in mentioned]
    text = f"def f({', '.join(params)}):\n" + textwrap.indent(body, "    ") + "\n"
    return defined(text, **OUTSIDE), made(params)


def made(names):
    """The arguments of these names, anew."""
    return {name: VALUES[name]() for name in names}


def contents(value):
    """What an argument holds, as something that can be compared."""
    match value:
        case Accumulator():
            return value.value
        case Buffer() | Replicated():
            return np.array(value.array)
        case orion.SparseArray():
            return value.values
        case _:
            return value.data if hasattr(value, "tocsr") else value


def result_of(function, given):
    """What a function returns, and its arguments afterwards."""
    arguments = made(given)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        returned = function(**arguments)
    return {name: contents(value) for name, value in {**arguments, "return": returned}.items()}


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


def test_rows_of_stored_elements_are_gone_through_in_a_function_of_their_own():
    storing, going = (
        "for (i, j), value in ratings:\n    ratings[i, j] = value + 1.0",
        "for i in range(n):\n    for j, value in ratings[i]:\n        out[i] += value",
    )
    both, given = function_of(f"{storing}\n{going}")
    with pytest.raises(orion.UnsupportedLoopError, match="in a function of their own"):
        orion.parallel_for(both).plan(**given)
    want = result_of(both, given)
    for body in (storing, going):
        one, names = function_of(body)
        orion.parallel_for(one)(**{name: given[name] for name in names})
    np.testing.assert_array_equal(given["out"], want["out"])
    np.testing.assert_array_equal(given["ratings"].values, want["ratings"])


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
            said = help_of(error).splitlines()[0].partition(": here `")[0] if help_of(error) else ""
            saying = [site for site in sites if site.says(said)]
            passed = [site for site in saying if site.is_in(frames)]
            found |= dict.fromkeys(passed or (saying if len(saying) == 1 else ()), one.printed)
    return found


def count(found) -> str:
    return (
        f"{len(found)} of {len(all_sites())} texts that say what to write are applied by programs, "
        f"{len(ELSEWHERE)} by other tests; {len(NO_CURE)} can not be applied"
    )


def test_every_text_is_applied_or_listed():
    """Prints how many are (`-s`). A text that is new, or has another wording, is to be applied or listed."""
    found = applied()
    keys, every = {site.key for site in found}, {site.key for site in all_sites()}
    print(f"\n{count(keys)}")
    listed = NO_CURE.keys() | ELSEWHERE.keys()
    assert every - keys - listed == set()
    assert listed - every == set(), "listed, and no longer there"
    assert listed & keys == set(), "listed, and applied"


def test_what_is_applied_elsewhere_is_a_test():
    for place in ELSEWHERE.values():
        file, _, name = place.partition("::")
        assert f"def {name}(" in (Path(__file__).parent / file).read_text()


def test_most_are_applied():
    assert len(CURED) > 250


if __name__ == "__main__":
    print(count({site.key for site in applied()}))
