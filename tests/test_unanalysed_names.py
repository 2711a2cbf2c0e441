"""Names and local functions in functions that run as they are: values, arguments and errors are Python's."""

from __future__ import annotations

import sys
import warnings
from math import nan

import numpy as np
import pytest
from numba.core.errors import NumbaError

import orion
from orion import SerialLoopWarning, UnsupportedLoopError
from orion.errors import StorageError
from orion.kernel.build.function_words import in_user_words


def outcome(function, *given):
    """What a call gives, or the class and text of its error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", SerialLoopWarning)
        try:
            return function(*given)
        except Exception as error:
            return type(error), str(error)


def refused(function, *given):
    """What is said of a function that does not run as it is."""
    with pytest.raises(UnsupportedLoopError) as caught:
        orion.parallel_for(function)(*given)
    return caught.value.__notes__[0]


# ------------------------------------------------------------ arguments of local functions


def by_keyword(a, n):
    seen = {0: 0}
    g = lambda x, j=2: x * 3 + j  # noqa: E731
    for i in range(n):
        a[i] = g(a[i], j=i) + g(x=a[i]) + g(j=i + seen[0], x=4)
    return a


def some_defaults(a, n):
    def g(x, j=2, k=n):
        return x + 10 * j + 100 * k

    seen = {0: 0}
    a[0] = g(1, 5) + seen[0]
    a[1] = g(1, k=a[2]) + (lambda x, y: x - y)(y=a[0], x=n)  # noqa: PLC3002
    return a


def defaults_of_then(a, n):
    k = seen = {0: 0}
    k = 1
    g = lambda x, j=k: x * 3 + j  # noqa: E731
    for i in range(n):
        k = k + i
        h = lambda x, j=k: x + j  # noqa: E731
        a[i] = g(a[i]) + h(1) + h(2, j=n) + seen[0]
    return a


def given_on(a, n):
    def h(f, x):
        return f(x, j=7)

    seen = {0: n}
    a[0] = h(lambda x, j=2: x * 3 + j, a[1]) + seen[0]
    return a


@pytest.mark.parametrize("function", [by_keyword, some_defaults, defaults_of_then, given_on], ids=lambda f: f.__name__)
def test_arguments_of_local_functions_are_bound_as_python_does(function):
    a, its = np.arange(1.0, 6.0), np.arange(1.0, 6.0)
    np.testing.assert_array_equal(outcome(orion.parallel_for(function), a, 4), function(its, 4))


def keyword_only(a):
    def g(x, *, y=4):
        return x + y

    return g(a[0]) + [1.0][0]


def collecting(a):
    def g(*xs):
        return xs[0]

    return g(a[0]) + [1.0][0]


def too_many(a):
    g = lambda x: x * 3  # noqa: E731
    return g(1, 5) + [1.0][0]


def unknown_keyword(a):
    g = lambda x: x * 3  # noqa: E731
    return g(1, z=5) + [1.0][0]


def too_few(a):
    g = lambda x, y: x * 3 + y  # noqa: E731
    return g(y=5) + [1.0][0]


def defaults_two_levels_deep(a):
    def h(x):
        g = lambda y, j=2: y * 3 + j  # noqa: E731
        return g(x, 9)

    return h(a[0]) + [1.0][0]


def default_that_is_text(a):
    h = lambda x, s="abc": x + len(s)  # noqa: E731
    if a[0] > 3:
        h = lambda x, s="abc": x - len(s)  # noqa: E731
    return h(2) + [1.0][0]


UNBOUND = {
    keyword_only: "the local function `g` has keyword-only parameters",
    collecting: "the local function `g` collects arguments by `*` or `**`",
    too_many: "a lambda takes 1 argument, and a call gives 2",
    unknown_keyword: "a lambda takes no further argument `z`",
    too_few: "a lambda gets no argument `x`",
    defaults_two_levels_deep: "the local function `h` defines a function with defaults",
    default_that_is_text: "a default of a lambda is no finite number",
}


@pytest.mark.parametrize("function", UNBOUND, ids=lambda f: f.__name__)
def test_arguments_that_numba_cannot_bind_are_refused(function):
    assert UNBOUND[function] in refused(function, np.ones(3))


def key_past_the_end(a):
    if a[0] > 5:
        h = lambda v, k: v[k]  # noqa: E731
    else:
        h = lambda v, k: v[k + 1]  # noqa: E731
    return h(a, len(a)) + [1.0][0]


def narrow_key(a):
    found = [np.uint8(3), np.uint8(5)]
    found.sort(key=lambda v: v - np.uint8(4))
    return found


def test_local_functions_that_are_chosen_when_it_runs_are_checked():
    assert outcome(orion.parallel_for(key_past_the_end), np.ones(3))[0] is IndexError
    assert "arithmetic with uint8" in refused(narrow_key, np.ones(3))


# ------------------------------------------------------------ names without a value


def in_a_branch(a, n):
    seen = {0: 1}
    if a.sum() > n:
        x = 3
    return x, seen[0]


def after_a_loop(a, n):
    seen = {0: 1}
    for i in range(n):
        x = a[i]
    return x, i, seen[0]


def of_the_trip_before(a, n):
    seen, total = {0: 1}, 0.0
    for i in range(n):
        if a[i] > 1.5:
            last = a[i]
        elif seen[0]:
            total += last
    return total


def deleted(a, n):
    seen = {0: 1}
    x = 1.0
    x = 2.0
    for i in range(n):
        b = a * i
        seen[0] += int(x + b[0])
        del b
        if i == 3:
            del x
    return seen


def in_a_try(a, n):
    seen = {0: 1}
    try:
        x = a[n]
    except Exception:
        seen[0] += 1
    return x, seen[0]


@pytest.mark.parametrize("n", [0, 2, 5])
@pytest.mark.parametrize(
    "function", [in_a_branch, after_a_loop, of_the_trip_before, deleted, in_a_try], ids=lambda f: f.__name__
)
def test_names_without_a_value_are_pythons_error(function, n):
    a = np.array([2.0, 1.0, 2.0, 0.0, 3.0])
    assert outcome(orion.parallel_for(function), a, n) == outcome(function, a, n)


def in_a_local_function(a):
    def g(c):
        if c > 5:
            x = 4
        return x

    return g(a[0]) + [1][0]


def read_by_a_chosen_lambda(a):
    if a[0] > 5:
        x = 4
    if a[1] > 5:
        g = lambda y: x + y  # noqa: E731
    else:
        g = lambda y: x - y  # noqa: E731
    return g(a[0]) + [1][0]


def read_by_local_functions(a, n):
    for i in range(n):
        x = a[i]
    g = lambda y: x + y  # noqa: E731
    found = [v * x for v in a[:n]]
    if n > 1 or a[n] > 1:
        found.append(g(a[n]))
    return found


def test_names_that_local_functions_read_are_looked_at_when_they_run():
    looped = orion.parallel_for(read_by_local_functions)
    for n, first in ((0, 1.0), (2, 1.0), (1, 3.0)):
        a = np.array([first, 1.0, 2.0])
        assert outcome(looped, a, n) == read_by_local_functions(a, n)
    assert outcome(looped, np.array([2.0]), 0)[0] is UnboundLocalError


def test_names_of_local_functions_without_a_value_are_refused():
    assert "`x` may have no value in the local function `g`" in refused(in_a_local_function, np.ones(3))
    assert "`x` may have no value where a function is defined" in refused(read_by_a_chosen_lambda, np.ones(3))


# ------------------------------------------------------------ dicts, and StopIteration


def places(a):
    found = {}
    for i in range(len(a)):
        found[a[i]] = i
    return found


def in_dicts(a):
    found = {0: {1.0: 2.0}}
    found[1] = {a[0]: a[1]}
    return found


def test_dicts_with_any_keys_are_returned():
    looped = orion.parallel_for(places)
    assert str(outcome(looped, np.array([1.0, nan, nan, 2.0]))) == "{1.0: 0, nan: 1, nan: 2, 2.0: 3}"
    for dtype in (np.int8, np.float32):
        a = np.arange(3).astype(dtype)
        assert outcome(looped, a) == places(a)
    assert outcome(orion.parallel_for(in_dicts), np.ones(3)) == {0: {1.0: 2.0}, 1: {1.0: 1.0}}


def stopping(a):
    seen = {0: 1}
    for i in range(len(a)):
        match i:
            case 2:
                raise StopIteration("no more")
    return min([seen[0]])


def least_or_stopping(a):
    seen = [v for v in a if v > 100]
    if a[0] > 5:
        raise StopIteration("no more")
    return min(seen)


def test_a_stop_iteration_of_the_user_stays_one():
    assert outcome(orion.parallel_for(stopping), np.ones(3)) == (StopIteration, "no more")


@pytest.mark.xfail(sys.version_info >= (3, 12), reason="Numba's `min` of an empty comprehension is 0.0 there")
def test_the_least_of_nothing_is_an_error_as_in_python():
    assert outcome(orion.parallel_for(least_or_stopping), np.ones(3))[0] is ValueError


# ------------------------------------------------------------ what Numba says


class Point:
    x = 3


def formatted(a):
    return ["a %d" % a[0]]  # noqa: UP031


def of_a_class(a):
    return [Point.x + a[0]]


def assigns_a_global(a):
    global KEPT  # noqa: PLW0603
    KEPT = [a[0]]


def catches_a_name(a):
    found = [a[0]]
    try:
        found.append(a[20])
    except IndexError as error:
        print(error)
    return found


def any_items(a):
    return len({}) + a[0]


def of_two_types(a):
    return [a[0]] if a[0] > 1 else "none"


def stores_floats(a):
    b = [np.arange(3)][0]
    b += a
    return b


def calls_a_number(a):
    half = 0.5
    for i in range(len(a)):
        a[i] = half(a[i])


SAID = {
    calls_a_number: "what it calls is float64, not a function",
    formatted: "`%` of text and float64 is not supported",
    of_a_class: "`Point` is a class, which is not supported",
    assigns_a_global: "it assigns to a global name",
    catches_a_name: "`except … as error` is not supported",
    any_items: "nothing says which items a list or dict is to hold",
    of_two_types: "a value is a list on one path and text on another",
    stores_floats: "it gives no reason",
}


@pytest.mark.parametrize("function", SAID, ids=lambda f: f.__name__)
def test_numba_is_told_in_words_of_python(function):
    assert refused(function, np.arange(3.0)).removeprefix("Numba cannot compile it as it is either: ") == SAID[function]


RECORDS = "unaligned array(Record(x[type=float64;offset=0],k[type=int8;offset=8];9;False), 1d, C)"
LACKING = "No implementation of function Function({0}) found for signature:\n \n >>> {1}"
VALUE_CALLED = (
    "Failed in nopython mode pipeline (step: nopython frontend)\n\x1b[1mInvalid use of {0} with parameters (int64)\n"
    "No type info available for {0} as a callable.\x1b[0m\nDuring: resolving callee type: {0}\n"
)
UNTYPED = "Type of variable '$12.3' cannot be determined, operation: call $6.2(), location: /a/b.py (3)"
OPCODE = "Use of unsupported opcode (STORE_ATTR_X) found\nRaised from /a/b.py (32)"


@pytest.mark.parametrize(
    ("said", "want"),
    [
        (
            LACKING.format("<built-in function setitem>", f"setitem({RECORDS}, Literal[str](x, y), float64)"),
            "assignment to a subscript of an array of records, text and float64 is not supported",
        ),
        (
            LACKING.format("int64", "<unknown function>(array(int64, 1d, C))"),
            "this call with an array of int64 is not supported",
        ),
        *(
            (VALUE_CALLED.format(kind), f"what it calls is {value}, not a function")
            for kind, value in (
                ("Literal[int](-1)", "an integer"),
                ("array(float64, 1d, C)", "an array of float64"),
                ("Tuple(Literal[int](1), Literal[int](2))", "a tuple"),
                ("none", "None"),
                ("DictType[int64,int64]<iv={1: 2}>", "a dict"),
                ("Literal[str](x)", "text"),
            )
        ),
        (UNTYPED, "the type of a value is not found"),
        ("Illegal IR, del found at: del b", ""),
        (OPCODE, "a statement of this kind is not supported"),
    ],
)
def test_types_and_opcodes_of_numba_are_not_told(said, want):
    assert in_user_words(NumbaError(said)) == want


# ------------------------------------------------------------ where it is compiled


def plain(a):
    for i in range(len(a)):
        a[i] = a[i] * 3.0 + 0.25


@pytest.mark.parametrize("function", [plain, places], ids=lambda f: f.__name__)
def test_a_deleted_current_folder_is_told_where_something_is_compiled(function, tmp_path, monkeypatch):
    monkeypatch.setenv("ORION_CACHE", str(tmp_path / "cache"))
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(StorageError, match="the current folder was deleted"):
        orion.parallel_for(function)(np.ones(3))


def test_the_help_of_plan_tells_of_functions_without_one():
    assert "Functions that run as they are have no plan" in " ".join(orion.parallel_for(plain).plan.__doc__.split())
