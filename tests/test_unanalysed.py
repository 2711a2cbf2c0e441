"""What Orion cannot analyse runs as it is where Numba compiles it, on one worker, with a warning that says why."""

from __future__ import annotations

import traceback
import warnings
from types import ModuleType
from typing import NamedTuple

import numpy as np
import pytest

import orion
from orion import SerialLoopWarning, UnsupportedLoopError
from orion.cli.cli import main

SCALE = 2.0


def twice(x):
    return SCALE * x


def growing(a):
    found = []
    for i in range(len(a)):
        if a[i] > 0:
            found.append(twice(a[i]))
    found.reverse()
    found.reverse()
    return np.array(found)


def complex_sines(a, n):
    z = 0j
    for i in range(n):
        z = np.sin(z * 1j) + a[i]
    return z


def counted(x):
    seen = {}
    for i in range(len(x)):
        if x[i] in seen:
            seen[x[i]] += 1
        else:
            seen[x[i]] = 1
    return max(seen.values())


def size_from_values(x):
    counts = np.zeros(x.max() + 1, np.int64)
    for i in range(len(x)):
        counts[x[i]] += 1
    return counts


def tried(x):
    total = 0.0
    for i in range(len(x)):
        if x[i] > 100:
            raise ValueError("too large")
        total += x[i]
    return total


def comprehension(x):
    squares = [v * v for v in x]
    return squares[0] + squares[-1]


def two_masks(A, rows, cols):
    total = 0.0
    for k in range(3):
        total += A[rows[k], cols].sum()
    return total


A = np.arange(1.0, 13.0)
ACCEPTED = {
    growing: lambda: (A - 4.0,),
    complex_sines: lambda: (A.copy(), 12),
    counted: lambda: (np.arange(12) % 5,),
    size_from_values: lambda: (np.arange(12) % 5,),
    tried: lambda: (A.copy(),),
    comprehension: lambda: (A.copy(),),
    two_masks: lambda: (A.reshape(3, 4).copy(), np.array([2, 0, 1]), np.array([1, 1, 3])),
}


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("function", ACCEPTED, ids=lambda f: f.__name__)
def test_gives_what_python_gives(function, workers):
    looped = orion.parallel_for(function)
    with orion.session(workers=workers), warnings.catch_warnings():
        warnings.simplefilter("ignore", SerialLoopWarning)
        for _ in range(2):
            np.testing.assert_array_equal(looped(*ACCEPTED[function]()), function(*ACCEPTED[function]()))


@pytest.mark.parametrize("function", [growing, complex_sines, counted], ids=lambda f: f.__name__)
def test_says_once_why(function):
    looped = orion.parallel_for(function)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        looped(*ACCEPTED[function]())
        looped(*ACCEPTED[function]())
    (one,) = [warning for warning in caught if warning.category is SerialLoopWarning]
    assert f"`{function.__name__}` runs on one worker, compiled by Numba as it is" in str(one.message)
    assert "is not supported" in str(one.message)
    assert one.filename == __file__


def test_a_plan_says_what_stands_in_the_way():
    with pytest.raises(UnsupportedLoopError, match="a list is not supported") as caught:
        orion.parallel_for(growing).plan(A)
    assert "Numba" in caught.value.__notes__[0]


def test_is_refused_where_it_must_be_parallel():
    looped = orion.parallel_for(require_parallel=True)(growing)
    with pytest.raises(UnsupportedLoopError, match="a list is not supported"):
        looped(A.copy())


def test_errors_are_those_of_python():
    looped = orion.parallel_for(complex_sines)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SerialLoopWarning)
        with pytest.raises(IndexError):
            looped(A.copy(), 13)
        with pytest.raises(ValueError, match="too large"):
            orion.parallel_for(tried)(A + 100.0)


def third(x, i):
    return x[i + 3]


def last_of_path(x, n):
    seen, i = {}, 0
    while i < n:
        seen[i] = third(x, i)
        i += 1
    return len(seen)


@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
def test_errors_are_told_with_the_lines_of_the_function():
    """The first one as all others."""
    looped = orion.parallel_for(last_of_path)
    for _ in range(2):
        with pytest.raises(IndexError) as caught:
            looped(A.copy(), 12)
        told = "".join(traceback.format_exception(caught.value))
        assert [entry.name for entry in caught.traceback] == [
            "test_errors_are_told_with_the_lines_of_the_function", "last_of_path", "third"
        ]  # fmt: skip
        assert [entry.line for entry in traceback.extract_tb(caught.tb)[1:]] == [
            "seen[i] = third(x, i)", "return x[i + 3]"
        ]  # fmt: skip
        assert "During handling" not in told
        assert len(told.splitlines()) == 8
    assert looped(A.copy(), 9) == 9


def catching(x, n):
    found = 0
    seen = {0: 0}
    for i in range(n):
        try:
            found += third(x, i)
        except Exception:
            seen[i] = 1
    return x[n]


@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
def test_errors_that_a_function_catches_are_not_told():
    with pytest.raises(IndexError) as caught:
        orion.parallel_for(catching)(A.copy(), 12)
    assert [entry.name for entry in caught.traceback][1:] == ["catching"]
    assert traceback.extract_tb(caught.tb)[-1].line == "return x[n]"


def pairs(n):
    found, k = [], 0
    while k < n:
        found.append((k, 0.5))
        k += 1
    return np.array(found)


def parts_of_many(x, k):
    seen, path = {0: 0}, np.zeros((100_000, 2))
    for i in range(len(x)):
        path[i] = x[i]
    return path[: k * len(seen)], x[:k]


def test_arrays_that_are_returned():
    looped = orion.parallel_for(pairs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SerialLoopWarning)
        np.testing.assert_array_equal(looped(3), pairs(3))
        assert looped(0).shape == (0, 2)
        x = A.copy()
        first, given = orion.parallel_for(parts_of_many)(x, 3)
    np.testing.assert_array_equal(first, parts_of_many(x, 3)[0])
    assert first.base is None
    assert np.shares_memory(given, x)


def test_helpers_and_numbers_from_outside_are_those_of_each_call(monkeypatch):
    looped = orion.parallel_for(growing)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SerialLoopWarning)
        np.testing.assert_array_equal(looped(A), 2.0 * A)
        monkeypatch.setitem(globals(), "SCALE", 3.0)
        np.testing.assert_array_equal(looped(A), 3.0 * A)
        monkeypatch.setitem(globals(), "twice", lambda x: x + 1.0)
        np.testing.assert_array_equal(looped(A), A + 1.0)


TABLE = np.arange(12.0)


def reads_a_table(x):
    found = []
    for i in range(len(x)):
        if x[i] >= 0:
            found.append(TABLE[i] + x[i])
    found.reverse()
    return found


def reads_a_module(x):
    found = []
    for i in range(len(x)):
        if x[i] >= 0:
            found.append(tables.TABLE[i] + x[i])
    found.reverse()
    return found


PAIR = (np.arange(12.0), 2.0)


def reads_a_tuple_of_arrays(x):
    found = []
    for i in range(len(x)):
        if x[i] >= 0:
            found.append(PAIR[0][i] + x[i])
    found.reverse()
    return found


def from_a_default(i, table=TABLE):
    return table[i]


def calls_with_a_default(x):
    found = []
    for i in range(len(x)):
        if x[i] >= 0:
            found.append(from_a_default(i) + x[i])
    found.reverse()
    return found


tables = ModuleType("tables")
tables.TABLE = TABLE


def random_numbers(x):
    found = []
    for _ in range(len(x)):
        found.append(np.random.rand())
    return found


def undefined(x):
    total = 0.0
    for i in range(len(x)):
        total += nowhere[i]  # noqa: F821
    return total


def with_a_file(x):
    with open("somewhere") as file:
        for _ in range(len(x)):
            file.read()


def of_a_float(x):
    total = 0.0
    for i in range(len(x)):
        total += x[i / 2]
    return total


def returns_a_dict(x):
    return len(x), {"first": x[0], "all": x}


def returns_a_dict_of_floats(x):
    return len(x), {"first": x[0], "sum": x.sum()}


def test_dicts_are_pythons():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SerialLoopWarning)
        found = orion.parallel_for(returns_a_dict_of_floats)(ones(3))
    assert type(found[1]) is dict
    assert found == returns_a_dict_of_floats(ones(3))


REFUSED = {
    returns_a_dict: "cannot be returned",
    reads_a_table: "constant",
    reads_a_module: "tables.TABLE",
    reads_a_tuple_of_arrays: "PAIR",
    calls_with_a_default: "constant",
    undefined: "",
    with_a_file: "Numba cannot compile it as it is either",
    of_a_float: "",
}


@pytest.mark.parametrize("function", REFUSED, ids=lambda f: f.__name__)
def test_what_numba_cannot_or_would_do_otherwise_is_refused(function):
    looped = orion.parallel_for(function)
    for _ in range(2):
        with pytest.raises(UnsupportedLoopError) as caught:
            looped(A.copy())
        assert REFUSED[function] in " ".join(getattr(caught.value, "__notes__", ()))


def test_random_numbers_are_refused_wherever_they_stand():
    with pytest.raises(UnsupportedLoopError):
        orion.parallel_for(random_numbers)(A)


def test_arguments_that_numba_has_no_types_for_are_refused():
    ratings = orion.sparse((np.array([0, 1]), np.array([0, 1])), np.ones(2), shape=(2, 2))
    with pytest.raises(UnsupportedLoopError):
        orion.parallel_for(growing)(ratings)


def test_products_of_complex_arrays_are_taken():
    def rotated(z, n):
        for i in range(n):
            z[i] = z[i] * 1j
        return z.prod()

    z, other = A + 1j, A + 1j
    with pytest.warns(SerialLoopWarning, match="complex"):
        got = orion.parallel_for(rotated)(z, 12)
    assert got == rotated(other, 12)
    np.testing.assert_array_equal(z, other)


class Points(NamedTuple):
    x: np.ndarray
    y: np.ndarray


def test_tuples_of_arrays_and_records_are_taken():
    def farthest(points, origin):
        best = 0.0
        for i in range(len(points.x)):
            best = max(best, (points.x[i] - origin[0]) ** 2 + (points.y[i] - origin[1]) ** 2)
        return best

    def heaviest(particles):
        best = 0
        for i in range(len(particles)):
            if particles[i].mass > particles[best].mass:
                best = i
        return best

    records = np.array([(1.0, 2.0), (3.0, 9.0), (4.0, 5.0)], dtype=[("x", "f8"), ("mass", "f8")])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SerialLoopWarning)
        given = Points(A, A[::-1].copy()), (1.0, 2.0)
        assert orion.parallel_for(farthest)(*given) == farthest(*given)
        assert orion.parallel_for(heaviest)(records) == 1


def test_a_large_integer_is_not_taken_for_one_without_a_sign():
    def listed(n):
        found = [0]
        for _ in range(2):
            found.append(n)
        return found

    with pytest.raises(orion.OrionError):
        orion.parallel_for(listed)(2**63)


def test_the_command_line_says_that_calls_run_it(tmp_path, capsys):
    source = tmp_path / "loops.py"
    source.write_text(
        "import orion\n\n\n@orion.parallel_for\ndef positive(a):\n    found = []\n    for i in range(len(a)):\n"
        "        if a[i] > 0:\n            found.append(a[i])\n    found.sort()\n    return found\n"
    )
    assert main(["explain", f"{source}:positive"]) == 1
    said = capsys.readouterr().err
    assert "a list is not supported" in said
    assert "a call runs it as it is, on one worker, if Numba compiles it" in said


# ------------------------------------------------------------ what Numba would compute otherwise


def in_place(a, b):
    seen = [0] * 1
    a += b
    seen.append(1)
    return a


def in_part(a, b):
    seen = [0] * 1
    a[1:] *= b
    seen.append(1)
    return a


def in_rows(a, b):
    seen = [0] * 1
    for i in range(len(a)):
        a[i] -= b
    seen.append(1)
    return a


def picked(a, b):
    seen = [0] * 1
    seen.append(1)
    return a[b]


def set_by_mask(a, b):
    seen = [0] * 1
    a[b] = 1.0
    seen.append(1)
    return a


def grown(a, b):
    seen, words = [0], "a"
    seen += [int(b)]
    words += "b"
    return len(seen), len(words)


def squared(a, b):
    seen = [0] * 1
    seen.append(1)
    return (a + 1) ** 2 + b


def least(a, b):
    seen = [v * b for v in a]
    return min(seen)


def onto_the_next(a, b):
    seen = [0] * 1
    a[b:] += a[:-b]
    seen.append(1)
    return a


def onto_its_transpose(a, b):
    seen = [0] * 1
    a -= a.T
    a *= a[b]
    seen.append(1)
    return a


def onto_the_mirrored(a, b):
    seen, part = [0] * 1, a[::-1]
    a += a
    for k in range(b):
        a[k:] += part[k:]
    seen.append(1)
    return a


def in_a_local_function(a, b):
    def onto(rows, mask):
        rows[1:] += rows[:-1]
        return rows[mask]

    seen = [0] * 1
    seen.append(1)
    return onto(a, b)


ones = np.ones
LENGTHS = [
    (onto_the_next, (np.arange(9.0), 1)), (onto_the_next, (np.arange(9), 2)), (onto_the_next, (A[:1], 1)),
    (onto_its_transpose, (np.arange(9.0).reshape(3, 3), 1)), (onto_the_mirrored, (np.arange(5.0), 3)),
    (in_a_local_function, (A[:3], np.array([True, False, True]))),
    (in_a_local_function, (A[:4], np.array([True, False, True]))),
    (in_place, (ones(3), ones(3))), (in_place, (ones(3), 2.0)), (in_place, (ones((2, 3)), ones(3))),
    (in_place, (ones((2, 3)), ones((2, 1)))), (in_place, (ones(3), ones(4))), (in_place, (ones(1), ones(3))),
    (in_place, (ones(3), ones((2, 3)))), (in_part, (ones(4), ones(3))), (in_part, (ones(4), ones(2))),
    (in_rows, (ones((4, 3)), ones(3))), (in_rows, (ones((4, 3)), ones(2))),
    (picked, (A[:3], np.array([True, False, True]))), (picked, (A[:4], np.array([True, False, True]))),
    (picked, (A[:3], np.array([2, 0]))), (picked, (A[:3], np.array([2, 3]))),
    (set_by_mask, (A[:3].copy(), np.array([True, False, True]))),
    (set_by_mask, (A[:4].copy(), np.array([True, False, True]))),
    (in_place, (ones(3), np.array(2.0))), (in_place, (ones(3), ones((1, 3)))), (in_place, (ones((2, 3)), ones((1, 3)))),
    (grown, (A, 2.0)), (squared, (np.arange(3), np.arange(3))),
    (least, (A, 2.0)), (least, (A[:0], 2.0)),
]  # fmt: skip


@pytest.mark.parametrize(("function", "given"), LENGTHS)
def test_lengths_are_looked_at_as_numpy_does(function, given):
    mine, its = (tuple(np.copy(part) if isinstance(part, np.ndarray) else part for part in given) for _ in range(2))
    want = outcome(function, its)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SerialLoopWarning)
        got = outcome(orion.parallel_for(function), mine)
    assert got == want
    for one, other in zip(mine, its, strict=True):
        np.testing.assert_array_equal(one, other)


def outcome(function, given):
    try:
        return np.asarray(function(*given)).tolist()
    except (ValueError, IndexError) as error:
        return type(error)


def flat(a, b):
    for i in range(b):
        a.flat[i] = i


def power(a, b):
    seen = [0] * 1
    seen.append(a**b)
    return seen


def difference(a, b):
    seen = [0.0] * 1
    for i in range(len(a)):
        seen.append(a[i] - b[i])
    return seen


def total(a, b):
    seen = [0.0] * 1
    seen.append((a * 2).sum())
    return seen


def added(a, b):
    seen = [0] * 1
    np.add(a, b, a)
    return seen


def text(a, b):
    seen = [0] * 1
    seen.append(1)
    return f"{a[0]}"


def added_in_place(a, b):
    seen = [0] * 1
    a += b
    return seen


def either(a, b):
    seen = [0] * 1
    seen.append(1)
    return (a > 1) + (b > 1)


def powers_in_part(a, b):
    seen = [0] * 1
    seen.append(1)
    return (a + 1) ** b


narrow = A.astype(np.uint8)
OTHERWISE = [
    (either, (A, A), "truth values"),
    (powers_in_part, (np.arange(3), np.arange(3)), "a power of integers"),
    (flat, (A.copy(), 3), "`.flat`"),
    (power, (2, -1), "a power of integers"),
    (difference, (narrow, narrow), "arithmetic with uint8"),
    (difference, (A.astype(np.uint64), A.astype(np.int64)), "arithmetic with int64 and uint64"),
    (difference, (A.astype(np.float32), A), "arithmetic with float32"),
    (difference, (A > 3, A > 4), "truth values"),
    (total, (narrow, 1), "uint8"),
    (total, (A.astype(np.float32), 1), "float32"),
    (added, (A.copy(), A), "`np.add` with an array for its result"),
    (added_in_place, (narrow.copy(), narrow), "arithmetic with uint8"),
    (text, (A, 1), "text of other values"),
]


@pytest.mark.parametrize(("function", "given", "why"), OTHERWISE, ids=lambda value: getattr(value, "__name__", ""))
def test_what_numba_computes_otherwise_is_refused(function, given, why):
    with pytest.raises(UnsupportedLoopError) as caught:
        orion.parallel_for(function)(*given)
    assert any("does not run it as it is either" in note and why in note for note in caught.value.__notes__)


def test_powers_by_constants_and_floats_run():
    def powers(a, b):
        seen = [a[0] ** 2]
        seen.append(b**-1)
        return seen

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SerialLoopWarning)
        assert orion.parallel_for(powers)(A, 4.0) == [1.0, 0.25]


def shrunk(v, n):
    count = 0
    while len(v) > 0:
        v = v - 1.0
        v = v[v > 0]
        count += 1
    return count


def greatest_value(B, x):
    before = 0.0
    for _ in range(100):
        y = B @ x
        new = np.sqrt(np.sum(y * y))
        x = y / new
        if abs(new - before) < 1e-9:
            break
        before = new
    return new


def halved(v, n):
    t, s = 0, 0.0
    while t < n:
        v = v * 0.5
        s += v[0]
        t += 1
    return s


@pytest.mark.parametrize(
    ("function", "given"),
    [(shrunk, (A.copy(), 1)), (greatest_value, (np.array([[2.0, 1], [1, 3]]), ones(2))), (halved, (A.copy(), 5))],
)
def test_arrays_of_other_rounds_that_are_not_returned(function, given):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SerialLoopWarning)
        assert orion.parallel_for(function)(*given) == pytest.approx(function(*given), rel=1e-13)
