"""No view of a plan has a name that the user has not written: loops over arrays, counters and array statements, whose
variables Orion makes, are told by their lines and by the numbers of their iterations."""

import html
import re

import numpy as np
import pytest

import orion
from benchmarks.everyday.cases import CASES
from orion.inspect.text.where import why_not_shared_out
from orion.ir.function import written_names
from orion.ir.nodes import names_in


def over_an_array(a, b, idx, M):
    for x in b:
        a[0] = a[0] * x + a[1]


def over_a_slice(a, b, idx, M):
    for x in b[2:90:3]:
        a[0] = a[0] * x + a[1]


def backwards(a, b, idx, M):
    for x in a[::-1]:
        a[0] = a[0] * x + 1.0


def zipped(a, b, idx, M):
    for x, y in zip(a, b):  # noqa: B905
        a[0] = a[0] * x + y


def enumerated(a, b, idx, M):
    for k, x in enumerate(a, start=3):
        b[k] = b[k - 1] * x * b[k - 2]


def enumerated_from_0(a, b, idx, M):
    for k, x in enumerate(a):
        b[k + 1] = b[k] * x * b[k]


def of_rows(a, b, idx, M):
    for row in M:
        M[0] += row * M[1]


def of_rows_and_elements(a, b, idx, M):
    for row in M:
        for x in row:
            M[0, 0] = M[0, 0] * x + M[1, 1]


def of_indices(a, b, idx, M):
    for i, j in np.ndindex(M.shape):
        M[0, j] = M[0, j] * M[i, j] + 1.0


def through_an_array(a, b, idx, M):
    for j in idx:
        a[j] = a[j] * a[j] + 1.0


def in_a_range_and_through_an_array(a, b, idx, M):
    for i in range(a.shape[0]):
        for j in idx:
            a[j] = a[j] * a[i]


def unnamed(a, b, idx, M):
    for _ in range(b.shape[0]):
        a[0] = a[0] * 0.5 + a[1]


def a_while_loop(a, b, idx, M):
    k = 0
    while k < b.shape[0] - 1:
        k += 1
        b[k] = b[k - 1] * b[k]
        for x in a:
            b[k] = b[k] * x + b[k - 1]


def a_comprehension(a, b, idx, M):
    c = [x * 2.0 for x in a]
    for k in range(1, len(c)):
        a[k] = a[k - 1] * c[k] * a[k - 1]


def statements_in_rounds(a, b, idx, M):
    for _ in range(5):
        M[1:, 1:] = M[:-1, :-1] * M[1:, 1:]
        for _ in range(3):
            M[0, 0] += M[1, 1] * M[0, 0]


def a_statement_under_a_loop(a, b, idx, M):
    for row in M:
        b[: row.shape[0]] += row * b[: row.shape[0]]


def relaxed(a, b, idx, M):
    for _ in range(6):
        M[1:-1, 1:-1] = 0.25 * (M[1:-1, :-2] + M[1:-1, 2:] + M[2:, 1:-1] + M[:-2, 1:-1])


LOOPS = [
    over_an_array, over_a_slice, backwards, zipped, enumerated, enumerated_from_0, of_rows, of_rows_and_elements,
    of_indices, through_an_array, in_a_range_and_through_an_array, unnamed, a_while_loop, a_comprehension,
    statements_in_rounds, a_statement_under_a_loop, relaxed,
]  # fmt: skip


def arguments(scale=1):
    rng = np.random.default_rng(0)
    return rng.random(90 * scale), rng.random(100 * scale), rng.integers(0, 90, 80), rng.random((40, 30))


def planned(function, *, force=False):
    with orion.session("threads", 4, force_parallel=force):
        return orion.parallel_for(function).plan(*arguments())


def views(plan):
    """The texts that people read."""
    page = re.sub("<style.*?</style>", "", plan._repr_html_(), flags=re.DOTALL)
    yield str(plan)
    yield html.unescape(re.sub("<[^>]*>", "\n", page))
    yield from (why_not_shared_out(plan.function, span) for span in plan.parallelism.serial)
    yield from (f"{one.message}; {one.hint}" for one in plan.reasons)
    yield from (f"{one.name}; {one.reason.message}" for one in plan.considered)


def made_names(plan):
    """The names in the loops of a plan that are not in the source."""
    found = set()
    parts = [part for loop in plan.loops for part in loop.parts]
    for loop in (*plan.loops, *plan.function.loops, *parts):
        found |= {*loop.nest.dims} | names_in(*loop.nest.loops)
    return found - written_names(plan.function.program.function) - {"once"}


@pytest.mark.parametrize("force", [False, True], ids=["as it pays", "forced"])
@pytest.mark.parametrize("function", LOOPS)
def test_no_view_has_a_name_that_is_not_in_the_source(function, force):
    plan = planned(function, force=force)
    names, written = made_names(plan), written_names(plan.function.program.function)
    for text in views(plan):
        words = re.findall(r"[A-Za-z_]\w*", text)
        assert not names.intersection(words)
        values = set(re.findall(r"(?<![\w!<>=])([A-Za-z_]\w*)=-?\d", text))
        assert values <= written, values - written


PROGRAMS = [
    "adaboost", "pagerank", "text_statistics", "log_return_summary", "epidemic_grid", "sor_red_black", "integral_image",
    "particle_swarm", "power_iteration",
]  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_view_of_a_program_has_a_name_that_is_not_in_its_source(name):
    case = next(one for one in CASES if one.name == name)
    with orion.session("threads", 2):
        plan = orion.parallel_for(case.function).plan(*case.arguments(case.large))
    function = plan.function.program.function
    names = made_names(plan) | (names_in(*function.body) - written_names(function))
    assert names
    for text in views(plan):
        assert not names.intersection(re.findall(r"[A-Za-z_]\w*", text))


TOLD = {
    over_an_array: "different iterations, such as iterations 0 and 1 of the loop in line +1",
    backwards: "iterations 0 and 89 of the loop in line +1",
    zipped: "iterations 0 and 1 of the loop in line +1",
    enumerated: "iterations 2 apart, such as iterations 0 and 2 of the loop in line +1",
    enumerated_from_0: "iterations (k) and (k+1), such as k=0 and k=1",
    of_rows_and_elements: "iteration 0 of the loop in line +1, iterations 0 and 1 of the loop in line +2",
    of_indices: "the same index 1 of the loop in line +1 meet in M, such as iterations (0, 0) and (1, 0)",
    through_an_array: "every element it could: an element of `idx` is read from an array",
    in_a_range_and_through_an_array: "such as i=0, iterations 0 and 1 of the loop in line +2",
    unnamed: "different iterations, such as _=0 and _=1",
    a_statement_under_a_loop: "iterations 0 and 1 of the loop in line +1, element 0 of line +2",
}


@pytest.mark.parametrize("function", TOLD)
def test_iterations_are_told_by_their_numbers_and_lines(function):
    first = function.__code__.co_firstlineno
    words = re.sub(r"line \+(\d)", lambda found: f"line {first + int(found[1])}", TOLD[function])
    assert words in " ".join(str(planned(function)).split())


def test_an_array_that_orion_makes_is_told_by_what_it_holds():
    with orion.session("threads", 2, force_parallel=True):
        plan = orion.parallel_for(relaxed).plan(*arguments()[:3], np.ones((2000, 2000)))
    text = " ".join(str(plan).split())
    line = relaxed.__code__.co_firstlineno + 2
    assert f"new values of M different iterations new values of M written and read, in line {line}" in text
    assert "independent, or 1d along _ or loop 2 no, as different iterations meet in M" in text
    assert "<code>new values of M</code>" in plan._repr_html_()


def rows_and_elements(a, b, idx, M):
    for _ in range(4):
        M[1:-1, 1:-1] = 0.5 * (M[2:, 1:-1] + M[:-2, 1:-1])
        a[1:] = 0.5 * b[: a.shape[0] - 1]
    b[:] = np.cumsum(b * 2.0)


def test_what_array_statements_go_over_is_said_in_words():
    with orion.session("threads", 4, force_parallel=True):
        text = str(orion.parallel_for(rows_and_elements).plan(*arguments(100)))
    assert "blocks of rows" in text
    assert "blocks of elements" in text
    assert not re.search(r"axis \d with|of axis|with iterations|of rewrites|array without", text)
