"""Loops in another order: the same bits, every dependence kept, and the plans that they make possible."""

import islpy as isl
import numpy as np
import pytest

import orion
from orion.dependence.region import find_region
from orion.dependence.scalars import live_after
from orion.dependence.study import Study, study_loop
from orion.errors import PlanError
from orion.frontend.parse import parse_function
from orion.ir.program import OfNewOrder
from orion.ir.signature import argument_types
from orion.passes.split import split_program
from orion.pipeline import through_passes
from orion.plan.plan import Written
from orion.rewrites.reorder.apply import prove_order
from tests.reorder_loops import (
    arguments,
    atax,
    backwards,
    bicg,
    bounded,
    cholesky,
    floyd,
    gemm,
    gemm_acc,
    gramschmidt,
    gs,
    jacobi1d,
    jacobi2d,
    last_value,
    lcs,
    lu,
    mvt,
    seidel9,
    trisolv,
    two_temporaries,
    warped,
)

# per loop: the strategies of its planned loops, and whether they are in another order than the written one
PLANS = {
    gemm: ["1d*"],
    gemm_acc: ["1d*"],
    gs: ["wavefront*"],
    seidel9: ["wavefront*"],
    lu: ["wavefront*"],
    cholesky: ["wavefront*"],
    jacobi1d: ["independent", "independent"],
    jacobi2d: ["independent", "independent"],
    floyd: ["2d"],
    bicg: ["independent", "1d*", "1d*"],
    atax: ["independent", "1d*", "1d*"],
    mvt: ["1d*", "1d*"],
    trisolv: ["independent*", "wavefront*"],
    lcs: ["wavefront*"],
    warped: ["wavefront*"],
    gramschmidt: ["wavefront*"],
    two_temporaries: ["independent"],
    backwards: ["serial*", "1d*"],
    bounded: ["1d*"],
    last_value: ["1d*", "serial*"],
}


@pytest.mark.parametrize("function", PLANS, ids=lambda f: f.__name__)
def test_plan(function):
    with orion.session(workers=2, force_parallel=True):
        plan = orion.parallel_for(function).plan(*arguments(24)[function])
    loops = [loop for loop in plan.function.loops if loop.nest.span.line]
    assert [loop.strategy + "*" * isinstance(loop.nest.form, OfNewOrder) for loop in loops] == PLANS[function]
    plan.check()


@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize("function", PLANS, ids=lambda f: f.__name__)
def test_the_result_is_that_of_the_written_order_bit_for_bit(function, workers):
    for n in (3, 9, 24):
        expected, found = arguments(n)[function], arguments(n)[function]
        returned = function(*expected)
        with orion.session(workers=workers, force_parallel=True):
            assert orion.parallel_for(function)(*found) == returned
        for one, other in zip(expected, found, strict=True):
            assert np.array_equal(one, other)


# ---------------------------------------------------------------- statements


def study(function, number=0) -> Study:
    types, _ = argument_types(dict(zip(function.__code__.co_varnames, arguments(9)[function], strict=False)))
    program = split_program(through_passes(parse_function(function), types), types)
    found = study_loop(program, number, types)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("function", "number", "statements"),
    [
        (gemm, 0, ["0,0,0 i j", "0,0,1,0 i j k"]),
        (gemm_acc, 0, ["0,0,0 i j"]),  # the scalar ties three statements together
        (lu, 0, ["0,0,0,0 i j k", "0,0,1 i j", "0,1,0,0 i j k"]),
        (two_temporaries, 0, ["0,0,0 i j", "0,1,0 i j"]),
        (last_value, 0, ["0,0,0 i j", "0,1 i", "0,2 i"]),
    ],
)
def test_statements(function, number, statements):
    found = study(function, number).region.statements
    assert [f"{','.join(map(str, s.place))} {' '.join(s.space.dims)}" for s in found] == statements


def early_exit(A, n):
    for i in range(n):
        if A[i] > 0.5:
            break
        A[i] = 1.0


def changed_bound(A, n):
    for i in range(n):
        n = n // 2
        for j in range(n):
            A[i, j] += A[i - 1, j]


def index_after(A):
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            A[i, j] += 1.0
        A[i, 0] += j


@pytest.mark.parametrize("function", [early_exit, changed_bound, index_after], ids=lambda f: f.__name__)
def test_what_has_no_form_as_statements(function):
    values = {"A": np.zeros((4, 4) if function is not early_exit else 4), "n": 3}
    types, _ = argument_types({name: values[name] for name in function.__code__.co_varnames if name in values})
    program = split_program(through_passes(parse_function(function), types), types)
    assert find_region(program.nests[0], types, live_after(program, 0)) is None


SIZE = 4
"""The value of every parameter in the comparison with brute force."""

# ---------------------------------------------------------------- the proof


def test_a_new_order_is_proved():
    for function in (gs, lu, jacobi1d, gemm):
        relations = study(function).relations
        prove_order(relations.dependences, relations.written)


@pytest.mark.parametrize("function", [gs, lu, jacobi1d, gemm], ids=lambda f: f.__name__)
def test_an_order_that_breaks_a_dependence_is_refused(function):
    relations = study(function).relations
    width = isl.Map.from_union_map(relations.written.range().identity()).dim(isl.dim_type.in_)
    names = [f"c{k}" for k in range(width)]
    backwards = f"{{ [{', '.join(names)}] -> [{', '.join(f'-{name}' for name in names)}] }}"
    reversed_order = relations.written.apply_range(isl.UnionMap(backwards, relations.written.get_ctx()))
    with pytest.raises(PlanError, match="does not keep a dependence"):
        prove_order(relations.dependences, reversed_order)


@pytest.mark.parametrize("function", PLANS, ids=lambda f: f.__name__)
def test_dependences_are_those_of_brute_force(function):
    """Every pair of instances of which one writes an element that the other touches, and no other pair."""
    some = 0
    for number in range(2 if function in (mvt, bicg, atax) else 1):
        found = study(function, number)
        statements = found.region.statements
        instances = [
            (tuple(order), statement, point)
            for statement in statements
            for point in points(isl.Set(statement.domain))
            for order in [written_place(statement, point, 5)]
        ]
        touched = {(statement.name, point): elements(statement, point) for _, statement, point in instances}
        expected = set()
        for order, statement, point in instances:
            for later, other, there in instances:
                if order < later and conflict(touched[statement.name, point], touched[other.name, there]):
                    expected.add((statement.name, point, other.name, there))
        assert pairs(found.relations.dependences) == expected
        some += len(expected)
    assert some or function is gemm_acc


def points(domain: isl.Set) -> list[tuple[int, ...]]:
    domain = fixed(domain)
    found: list[tuple[int, ...]] = []
    dims = range(domain.dim(isl.dim_type.set))
    domain.foreach_point(
        lambda p: found.append(tuple(int(p.get_coordinate_val(isl.dim_type.set, d).to_python()) for d in dims))
    )
    return found


def fixed(relation):
    for position in range(relation.dim(isl.dim_type.param)):
        size = SIZE
        relation = relation.fix_val(isl.dim_type.param, position, isl.Val.int_from_si(relation.get_ctx(), size))
    return relation


def written_place(statement, point: tuple[int, ...], width: int) -> list[int]:
    order = [statement.place[0]]
    for coordinate, place in zip(point, statement.place[1:], strict=True):
        order += [coordinate, place]
    return order + [0] * (2 * width - len(order))


def elements(statement, point) -> list[tuple[str, tuple[int, ...], bool]]:
    found = []
    for access in statement.accesses:
        relation = fixed(isl.Map(access.relation))
        for dim, coordinate in enumerate(point):
            relation = relation.fix_val(isl.dim_type.in_, dim, isl.Val.int_from_si(relation.get_ctx(), coordinate))
        found += [(access.array, element, access.is_write) for element in points(relation.range())]
    return found


def conflict(first, second) -> bool:
    return any(a == b and e == f and (w or v) for a, e, w in first for b, f, v in second)


def pairs(dependences: isl.UnionMap) -> set:
    found: set = set()

    def note(relation: isl.Map) -> None:
        names = relation.get_tuple_name(isl.dim_type.in_), relation.get_tuple_name(isl.dim_type.out)
        count = relation.dim(isl.dim_type.in_)
        for point in points(relation.wrap()):
            found.add((names[0], point[:count], names[1], point[count:]))

    dependences.foreach_map(note)
    return found


def many_pieces(A, n, m):
    for i in range(1, m, 2):
        for j in range(-2, n // 2 - 1):
            for k in range(i):
                for m_ in range(i, -1, -1):
                    A[j + 2, 2 * k] += A[k + 2 * i + 4, m_ + 1] + A[k + 2 * m_ + 3, m_ + 1]


def leaves_at_once(A, m):
    for i in range(m):
        for j in range(m):
            continue
            A[j, 0] += i


def far_apart(a, b, x, n):
    """The one order that isl finds has a loop over 6135 i + 3060 j."""
    t = 0.5
    for i in range(n // 2 + 1):
        t = 0.5 * b[i + 2] + 0.25 * t
        b[i + 3] = t * 0.5 + x[-i - 1]
        g = 0
        for j in range((i - 3) // 2, (i + 4) // 3):
            a[j + 4] = 0.3 * (a[3] + a[i + 4] - a[j + 3])
            a[g + 4] += 0.5 * b[j + 2] + 0.25 * t
            g += 1  # noqa: SIM113


def test_a_loop_whose_trips_would_be_far_apart_stays_as_it_is_written():
    given = np.ones(9), np.ones(8), np.ones(5), 6
    (loop,) = orion.parallel_for(far_apart).plan(*given).loops
    assert loop.form == Written()


@pytest.mark.parametrize("function", [many_pieces, leaves_at_once], ids=lambda f: f.__name__)
def test_what_stays_as_it_is_written(function):
    """The scheduler would take minutes for the one; a loop that is left is no loop of statements."""
    values = (np.ones((30, 13)), 4, 4)[: function.__code__.co_argcount]
    plan = orion.parallel_for(function).plan(*values)
    assert [loop.form for loop in plan.loops] == [Written()]


def scaled_subscripts(A, T, x, z, n, m):
    t = 0.5
    e = 2
    for i in range(n):
        for j in range(m - i):
            for k in range(4):
                e = 3
                for r in range(e):
                    t = x[-1] - A[j + 6, 3 * r]
                    T[r + k + 3, k + 9, 2 * r] = t * 0.5 + T[2 * j - r + 3, k - i + 6, -r - 1]
        T[i, i + 7, i] = 0.5 * A[2 * i - i + 6, i] + 0.25 * t
    return t


def test_subscripts_with_factors_do_not_keep_the_scheduler_for_long():
    """It took over twenty seconds when it was given these flow dependences as near pairs; the time limit would tell."""
    arrays = np.zeros((13, 7)), np.zeros((9, 13, 5)), np.zeros(1), np.zeros((4, 3))
    with orion.session(workers=2, force_parallel=True):
        orion.parallel_for(scaled_subscripts).plan(*arrays, 4, 3).check()
