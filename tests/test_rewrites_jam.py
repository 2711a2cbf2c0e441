"""Several trips of outer loops in one trip of the innermost: every trip is made once, in an order that keeps all
dependences of a permutable band, and results are those of the written loops."""

from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest

import orion
from orion.frontend.parse import parse_function
from orion.ir.printer import print_stmt
from orion.rewrites.jam.apply import in_register_tiles
from tests.trials import worker_counts


def square(A, n):
    for p in range(n):
        for q in range(n):
            for s in range(n):
                A[p, q, s] += 1


def ends_at_p(A, n):
    for p in range(n):
        for q in range(3, n + 2):
            for s in range(p + 1):
                A[p, q, s] += 1


def starts_at_both(A, n):
    for p in range(n):
        for q in range(n):
            for s in range(max(p, n - q), n + 3):
                A[p, q, s] += 1


def shifted(A, n):
    for p in range(n):
        for q in range(n):
            for s in range(p + 2 * q, n + p + q):
                A[p, q, s] += 1


def inner_loop_depends_on_outer(A, n):
    for p in range(n):
        for q in range(p, n):
            for s in range(n - q):
                A[p, q, s] += 1


def more_to_do_at_one_trip(A, n):
    for p in range(n):
        for q in range(n):
            for s in range(n):
                if q == 5 and n > 2:
                    A[p, q, s - 100] += 1
                A[p, q, s] += 1


def statements_around(A, n):
    for p in range(n):
        for q in range(n):
            A[p, q, -1] += 1
            for s in range(q):
                A[p, q, s] += 1
            A[p, q, q] += 1


LOOPS = [
    square, ends_at_p, starts_at_both, shifted, inner_loop_depends_on_outer, more_to_do_at_one_trip, statements_around,
]  # fmt: skip


class Trace(dict):
    """An array that notes which elements are written, in order."""

    def __init__(self) -> None:
        self.order: list[tuple[int, ...]] = []

    def __missing__(self, key):
        return 0

    def __setitem__(self, key, value):
        self.order.append(key)
        super().__setitem__(key, value)


def run(statements, n):
    trace = Trace()
    exec("\n".join(print_stmt(statement) for statement in statements), {"A": trace, "n": n})
    return trace


def coordinates(element):
    """The place of an instance in the band: the second statement of a trip stands right before its first."""
    p, q, s = element
    return p, q, s + 100 if s < -1 else s


@pytest.mark.parametrize("jammed", ["p", "q", "pq"])
@pytest.mark.parametrize("function", LOOPS, ids=lambda f: f.__name__)
def test_every_trip_is_made_once_and_no_dependence_of_a_permutable_band_is_turned_around(function, jammed):
    body = parse_function(function).body
    changed = in_register_tiles(body, {(name, "s") for name in jammed})
    for n in (0, 1, 2, 3, 4, 5, 7, 8, 9, 13):
        written, found = run(body, n).order, run(changed, n).order
        assert sorted(found) == sorted(written)
        place = {element: number for number, element in enumerate(found)}
        points = [coordinates(element) for element in written]
        for one, other in product(range(len(written)), repeat=2) if n < 8 else pairwise(range(len(written))):
            if one < other and all(x <= y for x, y in zip(points[one], points[other], strict=True)):
                assert place[written[one]] < place[written[other]], (written[one], written[other])


@pytest.mark.parametrize("function", LOOPS, ids=lambda f: f.__name__)
def test_loops_that_are_not_to_be_jammed_stay(function):
    body = parse_function(function).body
    assert in_register_tiles(body, {("p", "t"), ("t", "s")}) == body


def test_two_loops_are_jammed_four_by_four():
    (loop,) = in_register_tiles(parse_function(square).body, {("p", "s"), ("q", "s")})
    text = print_stmt(loop)
    assert "for p_strip in range(0, n, 4):" in text
    assert "A[p_strip + 3, q_strip + 3, s] += 1" in text


def only_sometimes_more(A, n):
    for p in range(n):
        for q in range(n):
            for s in range(n):
                A[p, q, s] += 1
        if n == 5:
            for q in range(n):
                A[p, q + n, 0] += 1


def test_what_is_rarely_done_in_an_outer_loop_keeps_no_loop_from_being_jammed():
    (loop,) = parse_function(only_sometimes_more).body
    many, rare = loop.body
    body = (replace(loop, body=(many, replace(rare, span=loop.span))),)  # as an `if` of isl's program
    changed = in_register_tiles(body, {("p", "s"), ("q", "s")})
    assert "A[p_strip + 3, q_strip + 3, s] += 1" in print_stmt(changed[0])
    for n in (0, 1, 4, 5, 9):
        assert sorted(run(changed, n).order) == sorted(run(body, n).order)
    assert run(changed, 5).order == run(body, 5).order


# ---------------------------------------------------------------- results


def product_of_matrices(A, B, C, scale):
    for i in range(C.shape[0]):
        for j in range(C.shape[1]):
            C[i, j] *= scale
            for k in range(A.shape[1]):
                C[i, j] += A[i, k] * B[k, j]


def lower_half(A, C):
    for i in range(C.shape[0]):
        for j in range(i + 1):
            for k in range(A.shape[1]):
                C[i, j] += A[i, k] * A[j, k]


def solve(L, b, x):
    for i in range(len(b)):
        x[i] = b[i]
        for j in range(i):
            x[i] -= L[i, j] * x[j]
        x[i] = x[i] / L[i, i]


def columns(A, y, x):
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            y[j] += A[i, j] * x[i]


def arguments(function, n):
    random = np.random.default_rng(n)
    A, B, C = random.random((n, n + 3)), random.random((n + 3, n + 1)), random.random((n, n + 1))
    square = random.random((n, n)) + n * np.eye(n)
    return {
        product_of_matrices: (A, B, C, 0.5),
        lower_half: (A, square),
        solve: (square, random.random(n), np.zeros(n)),
        columns: (A, np.zeros(n + 3), random.random(n)),
    }[function]


@pytest.mark.parametrize("function", [product_of_matrices, lower_half, solve, columns], ids=lambda f: f.__name__)
def test_results_are_those_of_the_written_loops_bit_for_bit(function):
    compiled = orion.parallel_for(function)
    for n in (1, 2, 3, 4, 5, 8, 9, 33):
        expected = arguments(function, n)
        function(*expected)
        for workers in worker_counts(1, 2, 4):
            found = arguments(function, n)
            with orion.session(workers=workers, force_parallel=True):
                compiled(*found)
            for one, other in zip(expected, found, strict=True):
                np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("function", [product_of_matrices, lower_half, solve, columns], ids=lambda f: f.__name__)
def test_these_loops_are_jammed(function):
    with orion.session(workers=2, force_parallel=True):
        assert "_strip" in orion.parallel_for(function).kernel_source(*arguments(function, 40))


def statement_at_the_first_trip(A, n):
    for p in range(n):
        A[p, -1] += 1
        for s in range(n + 3):
            A[p, s] += 1


def statement_at_the_last_trip(A, n):
    for p in range(n):
        for s in range(n + 3):
            A[p, s] += 1
        A[p, -1] += 1


@pytest.mark.parametrize(
    ("function", "place"), [(statement_at_the_first_trip, 0), (statement_at_the_last_trip, None)], ids=["first", "last"]
)
def test_a_statement_beside_the_loop_may_have_the_coordinates_of_its_first_or_last_trip(function, place):
    """isl writes it there where it comes before or after the trip with the same coordinates."""
    body = parse_function(function).body
    changed = in_register_tiles(body, {("p", "s")})
    for n in (1, 8, 9, 17):
        found = run(changed, n).order
        assert sorted(found) == sorted(run(body, n).order)
        at = {element: number for number, element in enumerate(found)}
        edge = n + 2 if place is None else place
        for p, q in product(range(n), repeat=2):
            if p < q:
                assert at[p, edge] < at[q, -1]
                assert at[p, -1] < at[q, edge]


def short_rows(p, m):
    for i in range(m):
        for j in range(i, i + 2):
            p[j + 2] = p[j]
        p[i + 2] //= 3


def test_rows_without_a_common_trip_are_run_one_after_the_other():
    p = np.arange(100, 140)
    expected = p.copy()
    short_rows(expected, 30)
    with orion.session(workers=2, force_parallel=True):
        compiled = orion.parallel_for(short_rows)
        compiled.plan(p, 30).check()  # refused: S1 of a row after S0 of the next ones
        compiled(p, 30)
    assert np.array_equal(p, expected)
