"""A Python function read into the loop language: what is read, where it stands, and how it prints."""

from __future__ import annotations

import ast
import inspect
import textwrap

import numba
import numpy as np
import pytest

from orion.errors import UnsupportedLoopError
from orion.frontend.parse import parse_function
from orion.ir.function import Function
from orion.ir.nodes import (
    Assign,
    Binary,
    Call,
    Const,
    Count,
    Dim,
    Dtype,
    Elements,
    For,
    Range,
    Return,
    Stmt,
    Subscript,
    Tuple,
    Update,
    Var,
    walk,
)  # fmt: skip
from orion.ir.printer import print_expr, print_function, print_stmt
from orion.ir.spans import without_spans
from orion.source import Span
from tests import loop_functions
from tests.loop_functions import norm2, square
from tests.loop_text import defined, from_body, from_text

PRINTED = [
    loop_functions.sgd_epoch, loop_functions.rmse, loop_functions.gauss_seidel, loop_functions.control_flow,
    loop_functions.precedence, loop_functions.slices, loop_functions.tuple_values, loop_functions.one_key,
]  # fmt: skip


def plain_source(function) -> str:
    """The function as `ast` prints it, without its docstring, with the forms that the loop language has one of."""
    definition = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    if ast.get_docstring(definition):
        definition.body = definition.body[1:]
    text = ast.unparse(definition)
    return text.replace("H[i][1:]", "H[i, 1:]").replace("H[i][0]", "H[i, 0]")


@pytest.mark.parametrize("function", PRINTED, ids=lambda function: function.__name__)
def test_prints_as_the_python_it_came_from(function):
    printed = print_function(parse_function(function))
    assert ast.unparse(ast.parse(printed)) == plain_source(function)


@pytest.mark.parametrize("function", [*PRINTED, loop_functions.arrays], ids=lambda function: function.__name__)
def test_printing_and_reading_again_changes_nothing(function):
    once = parse_function(function)
    again = from_text(print_function(once))
    assert print_function(again) == print_function(once)
    assert [without_spans(s) for s in again.body] == [without_spans(s) for s in once.body]


MINIMAL = [
    "x - (y - z)", "x - y - z", "x / (y * z)", "(x ** y) ** z", "x ** y ** z", "-x ** 2", "(-x) ** 2", "x ** -y",
    "-x * -y", "not x == y", "(not x) + y", "x and y or z", "x and (y or z)", "x if y else z if x else y",
    "(x if y else z) if x else y", "x < y + z < y | z", "(x < y) == z", "x & y == z", "~(x | y) << 2", "(x + y) @ z",
    "a[x:y + 1, ::2]", "a[x, -1:]", "a[(x if y else z)]", "norm2(x + y, z, 1)", "(x + y).sum()", "a.T @ (x @ y)",
]  # fmt: skip


@pytest.mark.parametrize("text", MINIMAL)
def test_parentheses_stand_only_where_they_are_needed(text):
    parsed = parse_function(defined(f"def g(a, x, y, z):\n    return {text}\n", norm2=norm2))
    assert print_expr(parsed.body[0].value) == text.replace("[(x if y else z)]", "[x if y else z]")


def test_names_are_canonical_however_they_were_imported():
    lines = print_function(parse_function(loop_functions.names)).splitlines()
    roots = "np.sqrt(b[i]) + np.sqrt(b[i]) + np.linalg.norm(b) + np.linalg.norm(b)"
    first = f"{roots} + math.exp(1.0) + math.exp(2) + np.abs(i)"
    assert lines[2].strip() == f"a[i] = {first}"
    assert lines[3].strip().endswith("+ bool(n) + round(b[i]) + helper(i, 2.0)")
    assert lines[4].strip() == "a[i] = 3 + np.float32(0.5) + 3.141592653589793 + np.inf"


def test_constants_from_outside_are_listed():
    assert dict(parse_function(loop_functions.names).constants) == {"SCALE": 3, "RATE": 0.5}


def test_arguments_that_are_dtypes():
    nodes = [node for stmt in parse_function(loop_functions.arrays).body for node in walk(stmt)]
    assert [node.name for node in nodes if isinstance(node, Dtype)] == ["float32", "int64", "float64"]


def test_len_of_what_is_iterated_is_a_count():
    last = parse_function(loop_functions.rmse).body[-1]
    assert [node.array for node in walk(last) if isinstance(node, Count)] == ["ratings"]


# ---------------------------------------------------------------- spans


def texts(function, kind: type) -> list[str]:
    """The source text below the span of every node of that class."""
    parsed = parse_function(function)
    nodes = [node for stmt in parsed.body for node in walk(stmt) if isinstance(node, kind)]
    return [parsed.source.line(node.span.line)[node.span.column : node.span.end_column] for node in nodes]


def test_spans_of_an_indented_function_are_those_of_the_file():
    def nested(a, n):
        for i in range(n):
            a[i] = a[i] + 1.0

    parsed = parse_function(nested)
    first = nested.__code__.co_firstlineno
    assert parsed.source.first_line == first
    assert parsed.source.file == __file__
    loop = parsed.body[0]
    assert loop.span == Span(__file__, first + 1, 8, first + 1, 25)
    assert loop.body[0].span == Span(__file__, first + 2, 12, first + 2, 29)
    assert texts(nested, Subscript) == ["a[i]", "a[i]"]
    assert texts(nested, Assign) == ["a[i] = a[i] + 1.0"]


def test_a_decorator_and_a_comment_at_the_margin_do_not_move_spans():
    def decorator(name):
        return lambda function: function

    @decorator("two lines")
    def nested(a, n):
        # at the margin
        for i in range(n):
            a[i] = 1.0

    parsed = parse_function(nested)
    line = parsed.body[0].span.line
    assert inspect.getsource(inspect.getmodule(nested)).splitlines()[line - 1].strip() == "for i in range(n):"
    assert parsed.span.line == line - 2


def test_columns_count_characters_where_the_line_has_others_than_ascii():
    def greek(α, βeta, n):  # noqa: PLC2401
        for i in range(n):
            α[i] = α[i] * βeta[i] + 1.0

    assert texts(greek, Subscript) == ["α[i]", "α[i]", "βeta[i]"]


def test_the_source_shows_what_a_span_covers():
    parsed = parse_function(loop_functions.rmse)
    update = next(node for stmt in parsed.body for node in walk(stmt) if isinstance(node, Update))
    quoted, carets = parsed.source.quote(update.span).splitlines()
    assert quoted.endswith("total += (r - W[i] @ H[j]) ** 2")
    assert carets.count("^") == len("total += (r - W[i] @ H[j]) ** 2")


# ---------------------------------------------------------------- forms


def statements(text: str) -> tuple[Stmt, ...]:
    return from_body(text).body


SAME = [
    ("x: float = 0.0", "x = 0.0"),
    ("x: float", ""),
    ("x = y = 0.0", "x = 0.0\ny = x"),
    ("'a string'\nx = 1", "x = 1"),
    ("...", "pass"),
    ("n0, m = W.shape", "n0, m = W.shape"),
    ("[x, y] = [1, 2]", "x, y = 1, 2"),
    ("x, y = (1, 2)", "x, y = 1, 2"),
    ("x = W[0][1]", "x = W[0, 1]"),
    ("for ((i, j), r) in a: pass", "for (i, j), r in a:\n    pass"),
    ("for (i,), r in a: pass", "for i, r in a:\n    pass"),
    ("for (i, j), (r,) in a: pass", "for (i, j), (r,) in a:\n    pass"),
    ("for (_, _), _ in a: pass", "for (_, _2), _3 in a:\n    pass"),
    ("for i in range(0, n, 1): pass", "for i in range(n):\n    pass"),
    ("a[0] @= b", "a[0] @= b"),
    ("x = +n", "x = +n"),
]


@pytest.mark.parametrize(("text", "printed"), SAME, ids=[text for text, _ in SAME])
def test_other_ways_to_write_the_same(text, printed):
    assert "\n".join(print_stmt(statement) for statement in statements(text)) == printed


def test_ranges_have_all_three_bounds():
    (loop,) = statements("for i in range(n - 1, -1, -2): pass")
    assert isinstance(loop, For)
    assert isinstance(loop.space, Range)
    assert [print_expr(e) for e in (loop.space.start, loop.space.stop, loop.space.step)] == ["n - 1", "-1", "-2"]


def test_elements_have_keys_and_values():
    (single,) = statements("for (i, j), r in a: pass")
    (several,) = statements("for i, (r, weight) in a: pass")
    assert (single.space.keys, single.space.values, single.space.single) == (("i", "j"), ("r",), True)
    assert (several.space.keys, several.space.values, several.space.single) == (("i",), ("r", "weight"), False)


def test_loops_are_numbered_in_textual_order():
    body = statements(
        "for i in range(n):\n    for j in range(n): pass\n    for k in range(n): pass\nfor l in range(n): pass"
    )
    found = {node.space.var: node.index for stmt in body for node in walk(stmt) if isinstance(node, For)}
    assert found == {"i": 0, "j": 1, "k": 2, "l": 3}


def test_a_comparison_is_a_chain():
    (statement,) = statements("x = 0 <= n < 10 != 3")
    assert statement.value.ops == ("<=", "<", "!=")
    assert [print_expr(operand) for operand in statement.value.operands] == ["0", "n", "10", "3"]


def test_dimensions_of_a_shape():
    (one, two) = statements("x = W.shape[1]\ny = W.shape[-1]")
    assert without_spans(one.value) == without_spans(Dim("W", 1, one.span))
    assert two.value.axis == -1


# ---------------------------------------------------------------- names from outside


def test_closure_scalars_are_constants_with_their_values_now():
    scale, rate = 4, np.float32(0.25)

    def closure(a, n):
        for i in range(n):
            a[i] = scale * rate

    parsed = parse_function(closure)
    assert print_stmt(parsed.body[0]).endswith("a[i] = 4 * np.float32(0.25)")
    assert dict(parsed.constants) == {"scale": 4, "rate": 0.25}


def test_a_negative_constant_keeps_its_parentheses():
    low = -2

    def closure(a, n):
        for i in range(n):
            a[i] = low**2 - low

    assert print_stmt(parse_function(closure).body[0]).endswith("a[i] = (-2) ** 2 - -2")


def test_a_local_hides_a_global_of_the_same_name():
    parsed = from_text("def f(a, np):\n    a[0] = np\n")
    assert without_spans(parsed.body[0].value) == without_spans(Var("np", parsed.span))


def test_helpers_are_parsed_once_callees_first():
    def caller(a, n):
        for i in range(n):
            a[i] = norm2(y=a[i], x=1.0) + square(a[i])

    parsed = parse_function(caller)
    assert [helper.name for helper in parsed.helpers] == ["square", "norm2"]
    assert print_stmt(parsed.body[0]).endswith("a[i] = norm2(1.0, a[i], 1) + square(a[i])")
    assert all(helper.helpers == () for helper in parsed.helpers)


def test_a_compiled_helper_is_read_from_its_python_function():
    compiled = numba.njit(square)

    def caller(a, n):
        for i in range(n):
            a[i] = compiled(a[i])

    assert [helper.name for helper in parse_function(caller).helpers] == ["square"]


def test_two_helpers_of_one_name_stay_apart():
    def make(power):
        def raised(x):
            return x**power

        return raised

    squared, cubed = make(2), make(3)

    def caller(a, n):
        for i in range(n):
            a[i] = squared(a[i]) + cubed(a[i])

    parsed = parse_function(caller)
    assert [helper.name for helper in parsed.helpers] == ["raised", "raised_2"]
    assert [print_stmt(helper.body[0]) for helper in parsed.helpers] == ["return x ** 2", "return x ** 3"]


def test_defaults_of_the_function_itself_are_the_callers_business():
    parsed = from_text("def f(a, n=3, *, m=4):\n    a[n] = m\n")
    assert parsed.params == ("a", "n", "m")
    assert isinstance(parsed.body[0], Assign)


def test_a_function_may_return_several_scalars():
    (statement,) = statements("return n, n + 1")
    assert isinstance(statement, Return)
    assert isinstance(statement.value, Tuple)
    assert print_stmt(statement) == "return n, n + 1"


# ---------------------------------------------------------------- functions that cannot be read


def without_source():
    scope: dict[str, object] = {}
    exec("def hidden(a):\n    a[0] = 1\n", scope)
    return scope["hidden"]


def generator(a):
    yield a[0]


UNREADABLE = [
    (without_source(), "the source of `hidden` cannot be read", "define the function in a file"),
    (lambda a: a, "not a function written with `def`", "def name(arguments)"),
    (generator, "`generator` is a generator", "def name(arguments)"),
]


@pytest.mark.parametrize(("function", "what", "hint"), UNREADABLE, ids=[what for _, what, _ in UNREADABLE])
def test_what_is_not_a_readable_function_is_refused(function, what, hint):
    with pytest.raises(UnsupportedLoopError) as error:
        parse_function(function)
    assert what in str(error.value)
    assert hint in str(error.value)


def test_a_source_that_has_changed_is_not_taken_for_the_function(tmp_path):
    import importlib.util
    import linecache

    path = tmp_path / "module.py"
    path.write_text("def f(a):\n    a[0] = 1\n")
    spec = importlib.util.spec_from_file_location("module", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    path.write_text("def g(a, b):\n    a[0] = 2  # longer\n")
    linecache.checkcache(str(path))
    with pytest.raises(UnsupportedLoopError, match="Python runs other code than its file says"):
        parse_function(module.f)


def test_what_is_parsed_holds_no_python_objects():
    parsed = parse_function(loop_functions.names)
    leaves = {type(node.value) for stmt in parsed.body for node in walk(stmt) if isinstance(node, Const)}
    assert leaves <= {int, float, bool}
    assert all(isinstance(node, Binary | Call) is (type(node) in (Binary, Call)) for node in walk(parsed.body[0]))
    assert isinstance(parsed.helpers[0], Function)
    assert not any(isinstance(node, Elements) for node in walk(parsed.body[0]))
