"""What errors say to write instead works: the statements that they give are run, and the call is made with that."""

import re

import numpy as np
import pytest
import scipy.sparse

import orion
from tests.loop_text import defined

pytestmark = pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")


def help_of(compiled, *arguments, error=orion.OrionError):
    with pytest.raises(error) as caught:
        compiled(*arguments)
    return str(caught.value).partition("  help: ")[2]


def followed(help_text, **names):
    """The names after the first statement that a help gives."""
    statement = re.search(r"`([^`]* = [^`]*)`", help_text)
    assert statement is not None, help_text
    exec(statement[1], {"np": np, "scipy": scipy}, names)
    return names


# ---------------------------------------------------------------- arrays of objects, lists


@orion.parallel_for
def by_label(lab, x, s):
    for i in range(x.shape[0]):
        s[lab[i]] += x[i]


@orion.parallel_for
def by_named_label(lab, x, s):
    for i in range(x.shape[0]):
        k = lab[i]
        s[k] += x[i]


@orion.parallel_for
def added(lab, x, s):
    for i in range(x.shape[0]):
        s[i] = lab[i] + x[i]


@orion.parallel_for
def at_halves(lab, x, s):
    for i in range(x.shape[0]):
        s[int(2 * lab[i])] += x[i]


@pytest.mark.parametrize(
    ("compiled", "items", "dtype"),
    [
        (by_label, [0, 1, 1], "np.int64"),
        (by_label, [0.0, 1.0, 1.0], "np.int64"),
        (by_named_label, [0.0, 1.0, 1.0], "np.int64"),
        (added, [0, 1, 1], "np.int64"),
        (added, [0.5, 1, 1], "float"),
        (added, [None, 1, 1], "float"),
        (added, [True, False, True], "bool"),
        (added, [1j, 1, 1], "complex"),
        (at_halves, [0.5, 1.0, 1.0], "float"),
        (at_halves, [0.0, 1.0, 1.0], "float"),
    ],
)
def test_arrays_of_objects(compiled, items, dtype):
    lab, x, s = np.array(items, object), np.ones(3), np.zeros(3, complex if dtype == "complex" else float)
    told = help_of(compiled, lab, x, s)
    assert told == f"write `lab = lab.astype({dtype})` before the call"
    compiled(followed(told, lab=lab)["lab"], x, s)
    assert s.any()


def test_arrays_of_texts_and_of_others():
    told = help_of(by_label, np.array(["a", "b", "a"], object), np.ones(3), np.zeros(3))
    s = np.zeros(3)
    by_label(followed(told, lab=np.array(["a", "b", "a"], object))["lab_array"], np.ones(3), s)
    np.testing.assert_array_equal(s, [2, 1, 0])
    told = help_of(by_label, np.array([object(), "b"], object), np.ones(2), np.zeros(3))
    assert told.startswith("pass the numbers that its elements hold")


@orion.parallel_for
def degrees(adj, out):
    for i in range(out.shape[0]):
        for k in range(len(adj[i])):
            out[i] += adj[i][k]


@orion.parallel_for
def degrees_in_one(adj, starts, x, out):
    for i in range(out.shape[0]):
        for j in adj[starts[i] : starts[i + 1]]:
            out[i] += x[j]


def object_array(rows):
    found = np.empty(len(rows), object)
    found[:] = rows
    return found


@pytest.mark.parametrize(
    "adj",
    [
        [[1, 2], [0], [0, 1, 2]],
        [[1, 2], [], [0]],
        [np.array([1, 2]), np.array([0]), np.array([0, 1, 2])],
        object_array([[1, 2], [0], [0, 1]]),
        object_array([np.array([1, 2]), np.array([], int), np.array([0])]),
        object_array([{1, 2}, {0}, {0, 1}]),
        [{1, 2}, {0}, {0, 1}],
    ],
    ids=str,
)
def test_rows_of_their_own_lengths(adj):
    told = help_of(degrees, adj, np.zeros(3))
    assert "`adj_array[adj_starts[i]:adj_starts[i + 1]]` is then `adj[i]`" in told
    names, out = followed(told, adj=adj), np.zeros(3)
    degrees_in_one(names["adj_array"], names["adj_starts"], np.arange(3), out)
    np.testing.assert_array_equal(out, [sum(row) for row in adj])


@orion.parallel_for
def between(ptr, out):
    for i in range(out.shape[0]):
        for _ in range(ptr[i], ptr[i + 1]):
            out[i] += 1


@orion.parallel_for
def doubled(out):
    for i in range(len(out)):
        out[i] *= 2


def doubles(x):
    for i in range(len(x)):
        x[i] *= 2


@orion.parallel_for
def doubled_by_a_helper(out):
    doubles(out)


def test_lists_that_are_only_read_are_not_brought_back():
    told = help_of(between, [0, 1, 3], np.zeros(2))
    assert told == "write `ptr_array = np.array(ptr)` before the call and pass `ptr_array`"
    out = np.zeros(2)
    between(followed(told, ptr=[0, 1, 3])["ptr_array"], out)
    np.testing.assert_array_equal(out, [1, 2])


@pytest.mark.parametrize("compiled", [doubled, doubled_by_a_helper])
def test_lists_that_are_written_are_brought_back(compiled):
    assert "`out[:] = out_array.tolist()` then brings back" in help_of(compiled, [0, 1, 3])


# ---------------------------------------------------------------- SciPy's matrices


@orion.parallel_for
def by_elements(A, out):
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            out[i] += A[i, j]


@orion.parallel_for
def times(A, x, out):
    for i in range(out.shape[0]):
        out[i] = (A @ x)[i]


@orion.parallel_for
def rows_times(A, x, out):
    for i in range(A.shape[0]):
        out[i] = A[i].dot(x)


@orion.parallel_for
def by_pairs(A, out):
    for (i, _), v in A:
        out[i] += v


def rows_of_lil(A, out):
    for i in range(out.shape[0]):
        for j in A.rows[i]:
            out[i] += j


def items_of_dok(A, out):
    for (i, _), v in A.items():
        out[i] += v


def rows_one_by_one(A, out):
    for i in range(out.shape[0]):
        out[i] = A.getrow(i).sum()


def columns_one_by_one(A, out):
    for j in range(out.shape[0]):
        out[j] = A.getcol(j).sum()


def at_nonzeros(A, out):
    for i, j in zip(*A.nonzero(), strict=False):
        out[i] += j


def as_dense(A, out):
    B = A.toarray()
    for i in range(out.shape[0]):
        out[i] = B[i, i]


ROWS = "go through its rows by `for p in range(A.indptr[i], A.indptr[i + 1]):`, with column `A.indices[p]` and value"
COLUMNS = "go through its columns by `for p in range(A.indptr[j], A.indptr[j + 1]):`, with row `A.indices[p]` and value"
ELEMENTS = "go through its elements by `for p in range(A.nnz):`, with row `A.row[p]`, column `A.col[p]` and value"
"""The loops of `by_rows`, `by_columns` and `by_places`."""


@orion.parallel_for
def by_rows(A, x, out):
    for i in range(A.shape[0]):
        for p in range(A.indptr[i], A.indptr[i + 1]):
            out[i] += A.data[p] * x[A.indices[p]]


@orion.parallel_for
def by_columns(A, x, out):
    for j in range(A.shape[1]):
        for p in range(A.indptr[j], A.indptr[j + 1]):
            out[A.indices[p]] += A.data[p] * x[j]


@orion.parallel_for
def by_places(A, x, out):
    for p in range(A.nnz):
        out[A.row[p]] += A.data[p] * x[A.col[p]]


@orion.parallel_for
def by_pairs_of_places(A, x, out):
    for i, j in zip(A.row, A.col, strict=False):
        out[i] += x[j]


KINDS = ("csr", "csc", "coo", "lil", "dok", "bsr", "dia")


def matrix(kind="csr"):
    return scipy.sparse.random(6, 6, 0.4, kind, random_state=0)


def test_the_loops_that_are_told_do_what_scipy_does():
    x = np.arange(6.0)
    for compiled, kind in ((by_rows, "csr"), (by_columns, "csc"), (by_places, "coo")):
        out = np.zeros(6)
        compiled(matrix(kind), x, out)
        np.testing.assert_allclose(out, matrix() @ x)
    found, theirs = np.zeros(6), np.zeros(6)
    by_pairs_of_places(matrix("coo"), x, found)
    at_nonzeros(matrix("lil"), theirs)
    np.testing.assert_array_equal(found, theirs)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("compiled", [by_elements, times, rows_times])
def test_matrices_that_are_used_otherwise_than_by_their_arrays(compiled, kind):
    given = (matrix(kind), np.zeros(6)) if compiled is by_elements else (matrix(kind), np.ones(6), np.zeros(6))
    told = help_of(compiled, *given, error=orion.ArgumentError)
    loop = {"csc": COLUMNS, "coo": ELEMENTS}.get(kind, ROWS)
    assert told.startswith(loop if kind in KINDS[:3] else f"write `A = A.tocsr()`, once before the call, and {loop}")


def test_a_matrix_that_is_gone_through_as_a_sparse_array():
    for kind in KINDS:
        assert help_of(by_pairs, matrix(kind), np.zeros(6)).startswith("pass `orion.from_scipy(A)`")
        by_pairs(orion.from_scipy(matrix(kind)), np.zeros(6))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("function", "attribute", "loop"),
    [
        (rows_of_lil, "rows", f"write `A = A.tocsr()`, once before the call, and {ROWS}"),
        (items_of_dok, "items", f"write `A = A.tocoo()`, once before the call, and {ELEMENTS}"),
        (rows_one_by_one, "getrow", f"write `A = A.tocsr()`, once before the call, and {ROWS}"),
        (columns_one_by_one, "getcol", f"write `A = A.tocsc()`, once before the call, and {COLUMNS}"),
        (
            at_nonzeros,
            "nonzero",
            "write `A = A.tocoo()`, once before the call (and `A.eliminate_zeros()` where it may have stor",
        ),
        (as_dense, "toarray", "write `A = A.toarray()`, once before the call, and leave `A.toarray()` out"),
    ],
)
def test_attributes_of_matrices_that_arrays_have_not(function, attribute, loop, kind):
    compiled = orion.parallel_for(function)
    with pytest.raises(orion.UnsupportedLoopError) as caught:
        compiled(matrix(kind), np.zeros(6))
    assert f"`A.{attribute}` is not supported, and `A` is one of SciPy's" in str(caught.value).splitlines()[0]
    assert str(caught.value).partition("  help: ")[2].startswith(loop)


@orion.parallel_for
def assembled(A, r, c, v):
    for k in range(r.shape[0]):
        A[r[k], c[k]] += v[k]


@orion.parallel_for
def stored(A, r, c, v):
    for k in range(r.shape[0]):
        A[r[k], c[k]] = v[k]


@orion.parallel_for
def assembled_in_part(A, r, c, v):
    for k in range(r.shape[0]):
        if v[k] > 0:
            A[r[k], c[k]] += v[k]


@orion.parallel_for
def assembled_by_cells(A, cells, v):
    for e in range(cells.shape[0]):
        for a in range(2):
            for b in range(2):
                A[cells[e, a], cells[e, b]] += v[a, b]


@pytest.mark.parametrize("kind", KINDS)
def test_matrices_that_are_assembled(kind):
    r, c, v = np.array([0, 1, 1]), np.array([1, 2, 2]), np.array([1.0, 2.0, 3.0])
    A, theirs = matrix(kind), matrix("lil")
    assembled.serial(theirs, r, c, v)
    found = followed(help_of(assembled, A, r, c, v), A=A, r=r, c=c, v=v)["A"]
    assert found.format == "csr"
    np.testing.assert_allclose(found.toarray(), theirs.toarray())
    told = help_of(stored, A, r, c, v)
    assert told.startswith("`A = scipy.sparse.coo_matrix((v, (r, c)), shape=A.shape).tocsr()`")
    for told in (help_of(assembled_by_cells, A, np.ones((2, 2), int), v), help_of(assembled_in_part, A, r, c, v)):
        assert told.startswith("write the row, column and value of each into arrays, `rows[k]`, `columns[k]`, `values")
        assert "`A = (A + scipy.sparse.coo_matrix((values, (rows, columns)), shape=A.shape)).tocsr()`" in told


# ---------------------------------------------------------------- methods of NumPy's functions


@pytest.mark.parametrize("ufunc", ["add", "subtract", "multiply", "maximum", "minimum", "fmax"])
@pytest.mark.parametrize("index", ["idx", "idx[i]"])
def test_what_is_told_for_functions_at_subscripts(ufunc, index, tmp_path):
    value = index.replace("idx", "x")
    text = f"def f(out, idx, x):\n    {{}}\n        np.{ufunc}.at(out, {index}, {value})\n"
    loop = "for _ in range(1):" if index == "idx" else "for i in range(len(idx)):"
    given = np.arange(4.0), np.array([1, 3, 1]), np.array([3.0, -2.0, 0.5])
    theirs = given[0].copy()
    defined(text.format(loop))(theirs, *given[1:])
    told = help_of(orion.parallel_for(defined(text.format(loop))), *given)
    quoted = re.findall("`([^`]*)`", told)
    body = quoted[0] if index == "idx[i]" else f"{quoted[1]}\n            {quoted[0]}"
    orion.parallel_for(defined(f"def f(out, idx, x):\n    {loop}\n        {body}\n"))(*given)
    np.testing.assert_array_equal(given[0], theirs)


# ---------------------------------------------------------------- arrays of rows that are taken apart

TAKEN_APART = {
    "a, b, c = pts[t]": "a, b, c = pts[t[0]], pts[t[1]], pts[t[2]]",
    "a, b, c = pts[tri[e]]": "a, b, c = pts[tri[e, 0]], pts[tri[e, 1]], pts[tri[e, 2]]",
    "a, b, c = pts[t]; a -= b": "a, b, c = pts[t[0]].copy(), pts[t[1]].copy(), pts[t[2]].copy()",
    "a, b, c = pts[t]; pts[t[0], 0] = 1": "a, b, c = pts[t[0]].copy(), pts[t[1]].copy(), pts[t[2]].copy()",
    "a, b, c = corners[e]": "a, b, c = corners[e, 0], corners[e, 1], corners[e, 2]",
}


@pytest.mark.parametrize("statement", TAKEN_APART)
def test_arrays_of_rows_that_are_taken_apart(statement):
    text = "def f(tri, pts, corners, out):\n    for e in range(len(tri)):\n        t = tri[e]\n"
    text += f"        {statement}\n        out[e] = (b[0] - a[0]) * (c[1] - a[1]) + t[0]\n"
    tri, corners = np.array([[0, 1, 2], [1, 2, 3]]), np.random.default_rng(0).random((2, 3, 2))
    given = tri, np.random.default_rng(0).random((4, 2)), corners, np.zeros(2)
    told = help_of(orion.parallel_for(defined(text)), *given)
    assert told == f"write `{TAKEN_APART[statement]}`"
    theirs = tuple(one.copy() for one in given)
    defined(text)(*theirs)
    first = statement.partition(";")[0]
    orion.parallel_for(defined(text.replace(first, TAKEN_APART[statement])))(*given)
    for mine, other in zip(given, theirs, strict=True):
        np.testing.assert_allclose(mine, other)


# ---------------------------------------------------------------- arrays that share memory


@orion.parallel_for
def scattered(out, idx):
    for i in range(idx.shape[0]):
        out[idx[i]] = (out[i] + 1) % 3


@orion.parallel_for
def scattered_in_one(out):
    for i in range(out.shape[0]):
        out[out[i]] = (out[i] + 1) % 3


@orion.parallel_for
def both(a, b):
    for i in range(1, len(a)):
        a[i] += 1
        b[i - 1] += 2


def test_a_copy_is_told_to_be_something_else():
    same = np.array([1, 2, 0])
    told = help_of(scattered, same, same, error=orion.AliasError)
    assert told == (
        "pass `idx.copy()` for `idx`, which is only read; the loop then reads in it what was there before the call, "
        "where Python reads what is written to `out`: for that, write the loop over one array"
    )
    theirs = np.array([1, 2, 0])
    scattered.serial(theirs, theirs)
    scattered_in_one(same)
    np.testing.assert_array_equal(same, theirs)
    told = help_of(both, same, same, error=orion.AliasError)
    assert "that changes `a` and `b` apart, where Python changes one array: for that, write the loop over one" in told
