"""Arrays of one dimension used as rows: how subscripts are taken apart, when that is right, and what comes out."""

import random
import textwrap

import numpy as np
import pytest

import orion
from orion.errors import OutOfBoundsError, SerialLoopWarning
from orion.ir.nodes import Subscript, walk
from orion.ir.printer import print_expr
from orion.ir.types import ArrayType, ScalarType
from orion.passes.delinearize import with_row_types, with_rows
from orion.pipeline import through_passes
from tests.loop_text import defined, from_body
from tests.oracles.interpreted import Order, kernel_code, run_interpreted

PARAMS = "A, B, X, n, m, p, x, s"
TYPES = {
    "A": ArrayType("float64", 1),
    "B": ArrayType("float64", 2),
    "X": ArrayType("int64", 1),
    **{name: ScalarType("int64", weak=True) for name in ("n", "m", "p")},
    "x": ScalarType("float64", weak=True),
    "s": ScalarType("int32"),
}


def nest(*subscripts, before="", inside=""):
    """Statements over i, j, k, one for each subscript of A."""
    lines = [before, "for i in range(n):", f"    {inside or 'pass'}", f"    {LOOPS}"]
    return "\n".join([*lines, *(f"            A[{one}] = x" for one in subscripts)]).strip()


LOOPS = "for j in range(m):\n        for k in range(p):"


def subscripts_of(body):
    """The subscripts of A after taking apart; None where nothing is."""
    function = with_rows(through_passes(from_body(body, PARAMS), TYPES), TYPES)
    if function is None:
        return None
    nodes = (node for statement in function.body for node in walk(statement))
    return [print_expr(node)[2:-1] for node in nodes if isinstance(node, Subscript) and node.base.name == "A"]


TAKEN = {
    ("i * m + j",): ["i, j"],
    ("j + m * i",): ["i, j"],
    ("(i - 1) * m + j", "i * m + j - 1", "(i + 1) * m"): ["i - 1, j", "i, j - 1", "i + 1, 0"],
    ("(i + 1) * m - 1 - j",): ["i, m - j - 1"],
    ("i * m + m - 1",): ["i, m - 1"],
    ("i * (m + 1)",): ["i, i"],
    ("i * m + j", "j"): ["i, j", "0, j"],
    ("2 * i * m + m + j",): ["2 * i + 1, j"],
    ("i * B.shape[1] + j",): ["i, j"],
    ("i * len(B) + j",): ["i, j"],
    ("(i * m + j) * p + k",): ["i, j, k"],
    ("i * m * p + j * p + k",): ["i, j, k"],
    ("i * p * m + j + k * m",): ["i, k, j"],
    ("i * m + j // 2",): ["i, j // 2"],
    ("i * m + min(j, 3)",): ["i, min(j, 3)"],
    ("i * m * m + j * m + k",): None,  # rows of m rows of m: one name for two lengths
    ("i * j",): None,
    ("i * m + j", "i * p + j"): None,
    ("i * m + j", "X[i]"): None,
    ("i * m + X[j]",): None,
    ("i * s + j",): None,  # 32 bits, in which the product may not fit
    ("i * 8 + j",): None,  # affine as it is
    ("i * m + j * p",): None,
}


@pytest.mark.parametrize("written", TAKEN, ids=" and ".join)
def test_subscripts_are_taken_apart(written):
    assert subscripts_of(nest(*written)) == TAKEN[written]


OTHER = {
    "a name for a part": (nest("row + j", inside="row = i * m"), ["i, j"]),
    "a name for a length": (nest("i * w + j", before="w = B.shape[1]"), ["i, j"]),
    "names for lengths": (nest("i * w + j", before="h, w = B.shape"), ["i, j"]),
    "a name that is set twice": (nest("row + j", inside="row = i * m") + "\n            row = 0", None),
    "a length that changes": (nest("i * m + j") + "\n    m -= 1", None),
    "the length of the array is used": (nest("i * m + j") + "\nreturn len(A)", None),
    "the array as a whole is used": (nest("i * m + j") + "\nreturn A.sum()", None),
    "a row of it is used": (nest("i * m + j") + "\n    A[i * m:(i + 1) * m] = x", None),
    "a name for a part of the trip before": (
        "row = 0\nfor i in range(n):\n    for j in range(m):\n        A[row + j] = i * m\n    row = i * m",
        None,
    ),
    "the variable is that of a further loop": (
        nest(inside="row = i * m").replace(LOOPS, "for i in range(p):\n        A[row] = x"),
        None,
    ),
}


COUNTED = "k = 0\nfor i in range(n):\n    for j in range(m):\n        A[k] = x\n        k += 1\n"
COUNTERS = {
    "from row to row": (COUNTED, ["i, j"]),
    "from two": (COUNTED.replace("k = 0", "k = 2"), ["i, j + 2"]),  # leaves the row: found when sizes are known
    "the first row is another": (COUNTED.replace("i in range(", "i in range(3, "), ["i - 3, j"]),
    "beside a product": (COUNTED.replace("k += 1", "A[i * m] = x\n        k += 1"), ["i, j", "i, 0"]),
    "begun in every trip": (COUNTED.replace("for i", "k = 1\nfor i"), None),
    "used after the loop": (COUNTED + "return k", None),
    "from an argument": (COUNTED.replace("k = 0\n", "").replace("k", "p"), None),
    "growing further in each row": (COUNTED + "    k += 1", None),
    "rows of different lengths": (COUNTED.replace("range(m)", "range(i)"), None),
    "a row that may be left": (COUNTED + "    if x > 3:\n        break", None),
    "a length that no subscript has": (COUNTED.replace("A[k] = x", "A[j] = k"), None),
}


@pytest.mark.parametrize("name", COUNTERS)
def test_counters_that_go_on_from_row_to_row(name):
    body, expected = COUNTERS[name]
    assert subscripts_of(body) == expected


@pytest.mark.parametrize("name", OTHER)
def test_what_else_is_in_the_function(name):
    body, expected = OTHER[name]
    assert subscripts_of(body) == expected


def test_types_and_what_is_told():
    function = with_rows(from_body(nest("(i * m + j) * p + k"), PARAMS), TYPES)
    (rows,) = function.rows
    assert (rows.written, rows.shown, list(map(print_expr, rows.widths))) == (
        "A[(i * m + j) * p + k]", "A[i, j, k]", ["m", "p"]
    )  # fmt: skip
    assert with_row_types(TYPES, function.rows)["A"].ndim == 3
    for kind in (ArrayType("float64", 1, c_contiguous=False), ArrayType("float64", 1, aligned=True)):
        assert with_rows(from_body(nest("i * m + j"), PARAMS), {**TYPES, "A": kind}) is None


# ---------------------------------------------------------------- plans and results


def loop(body, params="A, n, m"):
    return defined(f"def f({params}):\n" + textwrap.indent(textwrap.dedent(body).strip(), "    ") + "\n")


def over(columns, *subscripts):
    """`for`s over rows and columns with one assignment: the first subscript from the others."""
    first, *rest = (f"A[{one}]" for one in subscripts)
    value = " - ".join(["2 * i - 3 * j", *rest])
    return f"for i in range(n):\n    for j in {columns}:\n        {first} = {value}"


# loop, length of A for n = 6 and m = 4, and the strategy
PLANS = {
    "rows": (over("range(m)", "i * m + j", "i * m + j"), 24, "independent"),
    "an element more": (over("range(m)", "i * m + j", "i * m + j"), 25, "independent"),
    "a row less than is used": (over("range(m)", "i * m + j", "i * m + j"), 20, "serial"),
    "columns that run over": (over("range(m + 1)", "i * m + j", "i * m + j"), 25, "serial"),
    "columns that begin before": (over("range(-1, m)", "i * m + j + 1", "i * m + j"), 25, "serial"),
    "columns backwards": (over("range(m - 1, -1, -1)", "i * m + j"), 24, "independent"),
    "mirrored columns": (over("range(m)", "(i + 1) * m - 1 - j"), 24, "independent"),
    "part of the columns": (over("range(3)", "i * m + j", "i * m + j"), 24, "independent"),
    "more columns than m is": (over("range(9)", "i * m + j", "i * m + j"), 32, "serial"),
    "within rows": (over("range(1, m)", "i * m + j", "i * m + j - 1"), 24, "1d"),
    "under a condition": (over("range(m)", "i * m + j").replace("        A", "        if j > 0: A"), 24, "independent"),
    "rows from the end": (over("range(m)", "(i - n) * m + j"), 24, "independent"),
    "rows from an end that is no row's": (over("range(m)", "(i - n) * m + j"), 25, "serial"),
    "a counter": ("k = 0\n" + over("range(m)", "k") + "\n        k += 1", 24, "independent"),
    "a counter of columns that are none": ("k = 0\n" + over("range(m - 4)", "k") + "\n        k += 1", 24, "serial"),
    "a counter that begins within a row": ("k = 1\n" + over("range(m)", "k") + "\n        k += 1", 25, "serial"),
    "a triangle": (over("range(i)", "i * n + j", "j * n + i"), 36, "independent"),
}


def checked(function, workers, *arguments):
    """The strategy; a run on so many workers gave what plain Python gives, in any order that they get on."""
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    want = [np.copy(one) if isinstance(one, np.ndarray) else one for one in arguments]
    returned = function(*want)
    parallel = orion.parallel_for(function)
    prepared = parallel._preparations.plain.prepare(dict(zip(names, arguments, strict=True)), workers, True)
    codes = [kernel_code(part.kernel.text) for part in prepared.program.loops]
    for seed in range(3):
        got = [np.copy(one) if isinstance(one, np.ndarray) else one for one in arguments]
        given = prepared.given(dict(zip(names, got, strict=True)))
        assert run_interpreted(prepared.program, codes, given, Order(seed)) == returned
        assert all(np.array_equal(a, b) for a, b in zip(got, want, strict=True))
    return prepared.plan


@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
@pytest.mark.parametrize("name", PLANS)
def test_rows_are_used_where_that_is_right(name):
    body, length, strategy = PLANS[name]
    function = loop(body)
    if name == "a row less than is used":
        plan = orion.parallel_for(function).plan(np.arange(length), 6, 4)
    else:
        plan = checked(function, 2, np.arange(length), 6, 4)
    assert plan.strategy == strategy
    assert bool(plan.function.program.function.rows) == (strategy != "serial")
    plan.check()


@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
def test_one_function_at_several_sizes():
    """The same compiled function does not serve sizes at which rows overlap."""
    function = orion.parallel_for(loop(over("range(p)", "i * m + j", "i * m + j"), "A, n, m, p"))
    with orion.session(workers=2, force_parallel=True):
        for n, m, p, length in [(6, 4, 4, 24), (6, 4, 5, 25), (6, 4, 3, 24), (5, 5, 4, 26), (6, 1, 3, 9), (6, 0, 3, 9)]:
            want, got = np.arange(length), np.arange(length)
            function.serial(want, n, m, p)
            function(got, n, m, p)
            assert np.array_equal(got, want)
            assert function.plan(got, n, m, p).is_parallel == (p <= m)


def test_a_subscript_outside_is_told_as_it_is_written():
    function = orion.parallel_for(loop(over("range(m)", "i * m + j")))
    told = "subscript 23 leaves `A`, which has 23"
    with pytest.warns(SerialLoopWarning), pytest.raises(OutOfBoundsError, match=told):
        function(np.zeros(23), 6, 4)


@pytest.mark.parametrize("backend", ["threads", "serial"])
def test_arrays_change_in_place(backend):
    """Also where they are parts of larger ones."""
    transpose = orion.parallel_for(loop(
        """
        for i in range(n):
            for j in range(m):
                B[j * n + i] = A[i * m + j]
        """, "A, B, n, m"))  # fmt: skip
    A, whole = np.arange(35 * 24), np.zeros(2000, np.int64)
    B = whole[13 : 13 + 35 * 24]
    with orion.session(backend=backend, force_parallel=True):
        transpose(A, B, 35, 24)
    assert transpose.plan(A, B, 35, 24).strategy == "independent"
    assert np.array_equal(B.reshape(24, 35), A.reshape(35, 24).T)
    assert not whole[:13].any()
    assert not whole[13 + 35 * 24 :].any()


@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
def test_random_subscripts():
    """Whatever is taken for rows, results are those of plain Python."""
    choose, taken = random.Random(7), 0
    rows = ["i", "i", "(i + 1)", "(n - 1 - i)", "2 * i"]
    columns = ["j", "j", "j - 1", "m - 1 - j", "0", "-1 - j", "i"]
    for _ in range(40):
        within = choose.choice(["range(m)", "range(1, m)", "range(1, m)", "range(m - 1, 0, -1)", "range(1, p)"])
        used = [f"{choose.choice(rows)} * m + {choose.choice(columns)}" for _ in range(choose.choice([1, 2, 2, 3]))]
        function, m = loop(over(within, *used), "A, n, m, p"), choose.choice([2, 3, 5])
        array, p = np.arange(13 * m + choose.choice([0, 0, 1])), choose.choice([m, m + 1])
        plan = checked(function, choose.choice([2, 3]), array, 5, m, p)
        taken += bool(plan.function.program.function.rows)
    assert 15 < taken < 35


def test_what_the_plan_says():
    plan = orion.parallel_for(loop(over("range(m)", "i * m + j"))).plan(np.zeros(24), 6, 4)
    assert "rows        A is in rows of m elements: A[i * m + j] in line 4 is A[i, j] here" in str(plan)
    assert "A is in rows of m elements" in plan._repr_html_()
    (told,) = plan.to_dict()["loops"][0]["rows"]
    assert told == {"array": "A", "widths": ["m"], "written": "A[i * m + j]", "shown": "A[i, j]", "line": 4}
    serial = orion.parallel_for(loop(over("range(m + 1)", "i * m + j"))).plan(np.zeros(40), 6, 4)
    assert "only subscripts such as `A[i * m + j]` with 0 <= j < m" in serial.reasons[0].hint
