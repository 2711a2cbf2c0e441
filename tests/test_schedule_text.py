"""The proof of the text that is run: it holds for what the passes write, and finds what is wrong in it.

Broken texts are made by hand, one for each way in which a pass could be wrong, and by changing every number in a text,
where running it says what is wrong.
"""

import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import product

import islpy as isl
import numpy as np
import pytest

import orion
from benchmarks.polybench.kernels import KERNELS
from orion.dependence.bounds import fix_parameters
from orion.errors import PlanError, UnprovedWarning
from orion.ir.nodes import Assign, Binary, Call, Const, Dim, Evaluate, For, If, Stmt, Subscript, Var, walk
from orion.ir.printer import print_stmt
from orion.ir.rewriting import expand, rewrite
from orion.plan.plan import Merged, Reordered
from orion.plan.source_plans import source_plans
from orion.rewrites.lockstep.apply import LAG
from orion.rewrites.reorder import take
from orion.verify import text as verify_text
from orion.verify import text_sets
from tests.loop_text import defined
from tests.oracles.nest_check import SMALL_SIZES
from tests.reorder_loops import (
    arguments,
    atax,
    backwards,
    bounded,
    cholesky,
    gemm,
    gramschmidt,
    gs,
    last_value,
    lcs,
    lu,
    mvt,
    trisolv,
    warped,
)
from tests.test_rewrites_skewed_buffers import arguments as skewed_arguments
from tests.test_rewrites_skewed_buffers import conditional, from_below
from tests.test_rewrites_time_tiles import line
from tests.trials import ALL

POLYBENCH = {kernel.function.__name__: kernel for kernel in KERNELS}


@cache
def plan_of(function):
    values = arguments(24).get(function) or skewed_arguments(function, 30, 30, 9)
    with orion.session(workers=2, force_parallel=True):
        plan = orion.parallel_for(function).plan(*values)
    return replace(plan, function=plan.with_bodies())


def prove_text(plan, loop):
    return verify_text.prove_text(plan, loop, verify_text.source_of(plan, loop.form.origin))


def loops_of(plan):
    return [loop for loop in source_plans(plan.function) if isinstance(loop.form, Merged)]


# ---------------------------------------------------------------- what the passes write is right

WRITTEN = [atax, backwards, bounded, cholesky, gemm, gramschmidt, gs, last_value, lcs, lu, mvt, trisolv, warped]


@pytest.mark.parametrize("function", [*WRITTEN, conditional, from_below], ids=lambda f: f.__name__)
def test_the_text_of_a_new_order_is_proved(function):
    plan = plan_of(function)
    assert loops_of(plan)
    assert [sentence for loop in loops_of(plan) for sentence in prove_text(plan.function, loop)] == []


KERNEL_NAMES = ["two_mm", "trisolv", "lu", "correlation", "durbin", "jacobi_2d", "seidel_2d", "syr2k"]


@pytest.mark.parametrize("name", KERNEL_NAMES)
def test_kernels_of_polybench_are_proved(name):
    kernel = POLYBENCH[name]
    with orion.session(workers=2, force_parallel=True):
        plan = orion.parallel_for(kernel.function).plan(*kernel.inputs("tiny").values())
    with warnings.catch_warnings():
        warnings.simplefilter("error", UnprovedWarning)
        plan.check(workers=2)


def every_second(A, B, x, n, m):
    for i in range(A.shape[0] - 8):
        for j in range(n // 2, 1, -1):
            for k in range(1, m, 2):
                B[j + 1, k + 5] = x[k - 1] + 0.1
                B[j + 1, k + 6] = 0.3 * (A[0, 2 * k - j + 5] + A[j + 3, j + 2] - x[k - 1])
        A[i // 2 + 3, i + 2] = B[i, i // 2 + 6] - A[i + 1, 3 * i + 2]


def test_values_between_the_trips_of_a_loop_are_none(monkeypatch):
    """Loops with steps of 2 and 4: that one statement is run twice for x2 = 8 and 9 is no error where 9 is no trip."""
    monkeypatch.setattr(take, "_loses_vectors", lambda better, study: False)  # the order that this is about
    with orion.session(workers=2, force_parallel=True):
        plan = orion.parallel_for(every_second).plan(np.zeros((20, 40)), np.zeros((30, 30)), np.zeros(30), 8, 7)
    assert [isinstance(loop.form, Reordered) for loop in plan.function.loops] == [True]
    plan.check()


def never(b, n, m):
    c = 0
    for _ in range(n):
        for j in range(m):
            if c > 0:
                b[j] = 0


def test_an_if_of_the_source_stays_with_its_statement():
    """As a test around register tiles, it left rows of them without the statement, which was none of the proof's."""
    with orion.session(workers=2, force_parallel=True):
        plan = orion.parallel_for(never).plan(np.ones(7), 2, 2)
    assert [isinstance(loop.form, Reordered) for loop in plan.function.loops] == [True]
    plan.check()


# ---------------------------------------------------------------- what is broken by hand is found


def proof_of(function, change: Callable[[tuple[Stmt, ...]], tuple[Stmt, ...]], part: int = -1) -> tuple[str, ...]:
    """The proof of a function's only loop in a new order, with the text of one of its parts changed."""
    plan = plan_of(function)
    (loop,) = loops_of(plan)
    parts = list(loop.parts)
    body = change(parts[part].nest.body)
    assert body != parts[part].nest.body
    parts[part] = replace(parts[part], nest=replace(parts[part].nest, body=body))
    return prove_text(plan.function, replace(loop, form=replace(loop.form, parts=tuple(parts))))


def every(change: Callable[[Stmt], tuple[Stmt, ...] | None]):
    """All statements of a text for which `change` has something else."""

    def changed(statement: Stmt) -> tuple[Stmt, ...]:
        found = change(statement)
        return (statement,) if found is None else found

    return lambda body: expand(body, changed)


def loop_over(name, change):
    """The loops over a variable changed, in the order of the text; those for which it gives None stay."""
    return every(lambda s: change(s) if isinstance(s, For) and s.space.var == name else None)


def assigned(name, change):
    return every(
        lambda s: change(s) if isinstance(s, Assign) and isinstance(s.target, Var) and s.target.name == name else None
    )


def swapped_lines(loop):
    """The first two of the instances that are run together in a trip, the other way round."""
    size = len(loop.body) // 16
    first, second = loop.body[:size], loop.body[size : 2 * size]
    return (replace(loop, body=(*second, *first, *loop.body[2 * size :])),) if len(loop.body) >= 32 else None


def shorter(loop):
    space = loop.space
    stop = Binary("-", space.stop, Const(1, space.span), space.span)
    return (replace(loop, space=replace(space, stop=stop)),)


def longer_copy(loop):
    copies_back = [s for s in loop.body if isinstance(s, Assign) and s.target.base.name == "A"]
    space = loop.space
    stop = Binary("+", space.stop, Const(1, space.span), space.span)
    return (replace(loop, space=replace(space, stop=stop)),) if copies_back else None


def with_size(more):
    """The size of a tile changed: the only number that is as large."""

    def change(expr):
        is_size = isinstance(expr, Const) and expr.value > 8
        return replace(expr, value=expr.value + more) if is_size else expr

    return lambda s: (rewrite(s, change),)


def with_number(old, new):
    return lambda s: (rewrite(s, lambda e: replace(e, value=new) if e == Const(old, e.span) else e),)


def without_copies(target):
    return every(lambda s: () if is_copy(s) and s.target.base.name == target else None)


def is_copy(statement):
    return isinstance(statement, Assign) and isinstance(statement.target, Subscript) and isinstance(
        statement.value, Subscript
    )  # fmt: skip


def copied_before(body):
    """Copies back in front of the iterations."""
    return loop_over("x2_tile", lambda loop: (replace(loop, body=moved(loop.body)),))(body)


def moved(body):
    back = next(number for number, s in enumerate(body) if isinstance(s, If))
    return (*body[:back][:2], body[back], *body[2:back], *body[back + 1 :])


def backwards_in(statement):
    """What stands in the loop over x1 in another order."""
    if isinstance(statement, For) and statement.space.var == "x1" and len(statement.body) > 1:
        return (replace(statement, body=statement.body[::-1]),)
    return None


def narrower(statement):
    """A copy to a buffer with shorter lines."""
    return with_number(280, 200)(statement) if is_copy(statement) else None


BROKEN = {
    "lines of a register tile swapped": (gemm, loop_over("x2", swapped_lines), "in its order, and once"),
    "a tile too short": (gemm, assigned("x0_stop", with_size(-1)), "leave out"),
    "tiles that overlap": (gemm, assigned("x0_stop", with_size(1)), "in its order, and once"),
    "an iteration left out": (lu, loop_over("x2", shorter), "leave out"),
    "a loop run twice": (lu, loop_over("x2", lambda loop: (loop, loop)), "in its order, and once"),
    "loops the other way round": (lu, every(backwards_in), "before"),
    "an early exit of a strip": (trisolv, loop_over("x0_strip", shorter), "leave out"),
    "a lane shifted": (warped, assigned("x1", with_number(LAG, LAG - 1)), "leave out|once|too much"),
    "a lane too far ahead": (warped, assigned("x0", with_number(1, 2)), "leave out|once|too much"),
    "nothing copied back": (gs, without_copies("A"), "is written is not copied back"),
    "nothing copied in": (gs, without_copies("A_skewed"), "nothing is copied there"),
    "too much copied back": (gs, loop_over("x0_at1", longer_copy), "is not written|is elsewhere"),
    "copied back too early": (gs, copied_before, "before all uses"),
    "places that overlap": (gs, every(narrower), "two elements|elsewhere"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_text_is_refused(name):
    function, change, message = BROKEN[name]
    with pytest.raises(PlanError, match=message):
        proof_of(function, change)


def test_coordinates_of_sweeps_in_which_a_dependence_goes_backwards_are_refused():
    """Tiles of these could be run in no order that keeps it, though the text does what the coordinates say."""
    A = np.zeros(1_000_000)
    with orion.session(workers=2):
        plan = orion.parallel_for(line).plan(A, A.copy(), 20)
    function = plan.with_bodies()
    (loop,) = source_plans(function)
    (part,) = loop.parts
    assert part.form.is_time_tiled
    assert prove_text(function, loop) == ()
    less = part.form.places.replace("2_t", "_t")
    assert less != part.form.places
    broken = replace(part, form=replace(part.form, places=less))
    with pytest.raises(PlanError, match="backwards in a coordinate"):
        prove_text(function, replace(loop, form=replace(loop.form, parts=(broken,))))


def lanes_swapped(loop):
    size = len(loop.body) // 8
    return (replace(loop, body=(*loop.body[size : 2 * size], *loop.body[:size], *loop.body[2 * size :])),)


def strict_strips(statement):
    """The test whether a strip is whole, which is left to the loop over its trips once more than needed."""
    match statement:
        case If(test, body, orelse, span) if print_stmt(statement).startswith("if x0_strip + 8 >"):
            return (If(replace(test, ops=(">=",)), body, orelse, span),)
    return None


HARMLESS = {
    "lanes swapped that do not depend on each other": (warped, loop_over("x1_step", lanes_swapped)),
    "fewer strips in one go": (trisolv, every(strict_strips)),
}


@pytest.mark.parametrize("name", HARMLESS)
def test_what_is_changed_without_harm_is_proved_all_the_same(name):
    assert proof_of(*HARMLESS[name]) == ()


GIVEN = [
    "d = c", "d = n // 2", "d = min(n, c)", "d = max(c, 3) - 1", "d, e = c, n", "d = A.shape[1] - 2", "d = -(-c // 3)",
]  # fmt: skip


@pytest.mark.parametrize("given", GIVEN)
def test_names_that_the_function_gives_once_stand_for_their_values(given, monkeypatch):
    """Analysis has the values in place of the names, as have loops that isl writes; tiles of rounds have the names."""
    source = f"""\
def nest(A, n, c):
    {given}
    for _ in range(n):
        for j in range(d):
            A[j, 0] = A[j, c]
        for j in range(4):
            for k in range(1):
                A[j, k] = 0.5
"""
    for (module, name), value in SMALL_SIZES[2].items():
        monkeypatch.setattr(module, name, value)
    with orion.session(workers=2, force_parallel=True):
        plan = orion.parallel_for(defined(source)).plan(np.ones((9, 9)), 5, 4)
    assert any(loop.form.is_time_tiled for loop in plan.function.loops if isinstance(loop.form, Reordered))
    with warnings.catch_warnings():
        warnings.simplefilter("error", UnprovedWarning)
        plan.check(workers=2)


# ---------------------------------------------------------------- what could not be proved is said


def test_a_text_that_is_not_affine_is_not_proved():
    product_of_sizes = assigned("k", lambda s: (replace(s, value=Binary("*", s.value, s.value, s.span)),))
    (sentence,) = proof_of(lu, product_of_sizes)
    assert "not proved: what is run for a box" in sentence


def test_a_value_of_an_earlier_trip_is_not_taken_for_one_from_before_the_loop():
    def carried(loop):
        late = Assign(Var("x9", loop.span), Const(1, loop.span), loop.span)
        first = replace(late, value=Const(0, loop.span))
        body = expand(loop.body, lambda s: (with_x9(s),))
        return (first, replace(loop, body=(*body, late)))

    def with_x9(statement):
        if isinstance(statement, Assign) and statement.target == Var("i", statement.span):
            return replace(statement, value=Binary("+", statement.value, Var("x9", statement.span), statement.span))
        return statement

    (sentence,) = proof_of(lu, loop_over("x1", carried))
    assert "the value of `i`" in sentence


def test_past_the_limit_of_operations_a_warning_says_so(monkeypatch):
    monkeypatch.setattr(verify_text, "MAX_OPERATIONS", 1000)
    with pytest.warns(UnprovedWarning, match="too long"):
        plan_of(gemm).check(workers=2)


def test_sets_of_very_many_conditions_are_given_up_before_isl_looks_at_them(monkeypatch):
    def rounds_of_diagonals(B, n, m):
        for _ in range(m + 1):
            for j in range(1, n):
                for k in range(1, m):
                    B[j, k - 1] = 0.5 * B[j, k] - 0.25 * B[j - 1, k + 1]

    plan = orion.parallel_for(rounds_of_diagonals).plan(np.zeros((1000, 1001)), 999, 999)
    before = time.process_time()
    plan.check(workers=2)  # proved, as conditions that hold around a loop are taken out of it first
    assert time.process_time() - before < 20, "putting the pieces together takes more than that alone"
    monkeypatch.setattr(text_sets, "MAX_COALESCING", 1_000)
    with pytest.warns(UnprovedWarning, match="too many conditions"):
        plan.check(workers=2)


# ---------------------------------------------------------------- every number of a text changed, and run

SIZES = {gemm: (3, 4, 5), lu: (6, 6), trisolv: (11, 11, 11), lcs: (11, 10), warped: (11, 10)}
BOXES = [(-9, 30), (1, 9)]
TRIED = {gemm: 8, lu: 25, trisolv: 8, lcs: 6, warped: 6} if ALL else {gemm: 2, lu: 9, trisolv: 8, lcs: 3, warped: 3}
"""How many of the numbers of a text are changed."""


def numbers_of(body, statements):
    """How many numbers a text has beside those in statements."""
    return sum(isinstance(node, Const) for part in recorded(body, statements) for node in walk(part))


def recorded(body, statements) -> tuple[Stmt, ...]:
    """The text with a note of its instance instead of each statement."""
    for statement in statements:
        (first, *others) = statement.body
        assert not others
        loops = tuple(Var(loop.space.var, first.span) for loop in statement.loops)
        note = Evaluate(Call(f"helper:{statement.name}", loops, first.span), first.span)
        body = expand(body, lambda s, first=first, note=note: (note,) if s == first else (s,))
    return body


def with_numbers(body, changed: int, by: int):
    """The text with one of its numbers changed."""
    count = iter(range(10**6))

    def change(expr):
        return replace(expr, value=expr.value + by) if isinstance(expr, Const) and next(count) == changed else expr

    return tuple(rewrite(statement, change) for statement in body)


def trace(body, statements, values, limits):
    """The instances that a text runs, in order."""
    order: list[tuple] = []
    names = {s.name: lambda *at, name=s.name: order.append((name, *at)) for s in statements}

    def sized(expr):
        return Const(values[f"{expr.array}__{expr.axis}"], expr.span) if isinstance(expr, Dim) else expr

    text = "\n".join(print_stmt(rewrite(statement, sized)) for statement in body)
    exec(text.replace("helper:", ""), {**names, **limits})
    return order


def points(relation):
    found = []
    dims = range(relation.dim(isl.dim_type.set))
    relation.foreach_point(
        lambda p: found.append(tuple(int(p.get_coordinate_val(isl.dim_type.set, d).to_python()) for d in dims))
    )
    return found


def maps(relation):
    found: list[isl.Map] = []
    relation.foreach_map(found.append)
    return found


def wanted_of(part, origin, values, limits):
    """The instances in a box, and the pairs that must be in order."""
    inside, pairs = set(), []
    for one in maps(isl.UnionMap(part.form.places)):
        fixed = fix_parameters(one.wrap(), values).unwrap()
        size = fixed.dim(isl.dim_type.in_)
        for point in points(fixed.wrap()):
            place = zip(point[size:], part.nest.limits, strict=True)
            if all(limits[first] <= c < limits[end] for c, (first, end) in place):
                inside.add((one.get_tuple_name(isl.dim_type.in_), *point[:size]))
    for one in maps(isl.UnionMap(origin.dependences)):
        ends = one.get_tuple_name(isl.dim_type.in_), one.get_tuple_name(isl.dim_type.out)
        size = one.dim(isl.dim_type.in_)
        for point in points(fix_parameters(one.wrap(), values)):
            pair = (ends[0], *point[:size]), (ends[1], *point[size:])
            pairs += [pair] if {*pair} <= inside else []
    return inside, pairs


def is_right(order, inside, pairs):
    place = {instance: number for number, instance in enumerate(order)}
    complete = len(order) == len(place) and place.keys() == inside
    return complete and all(place[x] < place[y] for x, y in pairs)


@pytest.mark.parametrize("function", SIZES, ids=lambda f: f.__name__)
def test_every_changed_number_that_makes_a_run_wrong_is_refused(function):
    plan = plan_of(function)
    (loop,) = loops_of(plan)
    part = loop.parts[-1]
    statements, nest = loop.form.origin.statements, part.nest
    names = sorted({name for name, size in isl_parameters(loop.form.origin.dependences)})
    values = dict(zip(names, SIZES[function], strict=False))
    cases = []
    for low, high in BOXES:
        limits = {name: value for pair in nest.limits for name, value in zip(pair, (low, high), strict=True)}
        cases.append((limits, *wanted_of(part, loop.form.origin, values, limits)))
    text = recorded(nest.body, statements)
    total = numbers_of(nest.body, statements)
    wrong = refused = 0
    for number, by in product(range(0, total, max(1, total // TRIED[function])), (-1, 1)):
        changed = with_numbers(text, number, by)
        try:
            ran = all(is_right(trace(changed, statements, values, case[0]), *case[1:]) for case in cases)
        except (ZeroDivisionError, ValueError):
            ran = False
        verdict = proof_says(plan, loop, part, restored(changed, statements))
        refused += verdict is not True
        wrong += not ran
        assert ran or verdict is not True, (number, by)
    assert all(is_right(trace(text, statements, values, case[0]), *case[1:]) for case in cases)
    assert 0 < wrong <= refused


def isl_parameters(text):
    relation = isl.UnionMap(text)
    space = relation.get_space()
    return [(space.get_dim_name(isl.dim_type.param, k), k) for k in range(space.dim(isl.dim_type.param))]


def restored(body, statements):
    """The statements where their notes are."""
    for statement in statements:
        name = f"helper:{statement.name}"

        def back(s, name=name, statement=statement):
            noted = isinstance(s, Evaluate) and isinstance(s.value, Call) and s.value.function == name
            return statement.body if noted else (s,)

        body = expand(body, back)
    return body


def proof_says(plan, loop, part, body):
    """True where the text is proved, False where it is refused, None where there is no proof."""
    parts = tuple(replace(p, nest=replace(p.nest, body=body)) if p is part else p for p in loop.parts)
    try:
        return None if prove_text(plan.function, replace(loop, form=replace(loop.form, parts=parts))) else True
    except PlanError:
        return False
