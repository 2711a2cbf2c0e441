"""Sparse matrices as arguments: SciPy's by their arrays, Orion's by rows and columns. Results are those of the plain
function; what is wrong with a matrix is said."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

import orion
from orion.errors import ArgumentError, OutOfBoundsError, UnsupportedLoopError
from tests.trials import times

pytestmark = pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")


@orion.parallel_for
def multiply(y, A, x):
    for i in range(A.shape[0]):
        s = 0.0
        for p in range(A.indptr[i], A.indptr[i + 1]):
            s += A.data[p] * x[A.indices[p]]
        y[i] = s


@orion.parallel_for
def scale_rows(A, d):
    n, _ = A.shape
    for i in range(n):
        for p in range(A.indptr[i], A.indptr[i + 1]):
            A.data[p] *= d[i]


@orion.parallel_for
def multiply_coo(y, A, x):
    for p in range(A.nnz):
        y[A.row[p]] += A.data[p] * x[A.col[p]]


@orion.parallel_for
def by_rows(out, R, w):
    for i in range(R.shape[0]):
        for j, v in R[i]:
            out[i] += v * w[j]


@orion.parallel_for
def by_columns(out, R, w):
    for j in range(R.shape[1]):
        for i, v in R[:, j]:
            out[j] += v * w[i]


@orion.parallel_for
def of_users(out, R, users):
    for k in range(len(users)):
        for j, v in R[users[k]]:
            if j == 2:
                continue
            out[k] += v * (j + 1)


@orion.parallel_for
def means(out, R):
    for i in range(R.shape[0]):
        total = 0.0
        for j, v in R[i]:
            total += v * j
        out[i] = total / max(1, len(R[i])) + len(R[:, i % R.shape[1]])


@orion.parallel_for
def tuples(out, R):
    for i in range(R.shape[0]):
        for j, (v, w) in R[i]:
            out[i] += v * w + j


@orion.parallel_for
def elements_and_rows(out, total, R):
    for (_, j), v in R:
        total[j] += v
    for i in range(R.shape[0]):
        for j, v in R[i]:
            out[i] += v * total[j]
    return len(R)


@orion.parallel_for
def product(y, A, B, x):
    for i in range(A.shape[0]):
        for p in range(A.indptr[i], A.indptr[i + 1]):
            k = A.indices[p]
            for q in range(B.indptr[k], B.indptr[k + 1]):
                y[i] += A.data[p] * B.data[q] * x[B.indices[q]]


@orion.parallel_for
def common(out, R, S):
    for i in range(R.shape[0]):
        for j, v in R[i]:
            for k, w in S[j]:
                out[i] += v * w * k


@orion.parallel_for
def smooth(x, A):
    for i in range(A.shape[0]):
        for p in range(A.indptr[i], A.indptr[i + 1]):
            x[i] += 0.25 * A.data[p] * x[A.indices[p]]


def matrix(rows=30, columns=20, density=0.15, seed=0, kind="csr"):
    rng = np.random.default_rng(seed)
    return scipy.sparse.random_array((rows, columns), density=density, format=kind, rng=rng)


@pytest.fixture(params=[1, 2, 4], autouse=True)
def workers(request):
    with orion.session(workers=request.param, force_parallel=True):
        yield request.param


def same_as_serial(decorated, *arguments):
    """Run it and the plain function on copies of the first argument, and compare these."""
    mine, theirs = arguments[0].copy(), arguments[0].copy()
    returned = decorated(mine, *arguments[1:])
    assert decorated.serial(theirs, *arguments[1:]) == returned
    if isinstance(mine, np.ndarray):
        np.testing.assert_array_equal(mine, theirs)
    return mine


@pytest.mark.parametrize("make", [scipy.sparse.csr_array, scipy.sparse.csr_matrix])
def test_rows_of_scipys_matrices(make):
    A, x = make(matrix()), np.random.default_rng(1).random(20)
    y = same_as_serial(multiply, np.zeros(30), A, x)
    np.testing.assert_allclose(y, A @ x)
    assert multiply.plan(y, A, x).strategy == "independent"


def test_columns_of_scipys_matrices():
    A, x = matrix(kind="csc"), np.random.default_rng(1).random(30)

    @orion.parallel_for
    def transposed(y, A, x):
        for j in range(A.shape[1]):
            for p in range(A.indptr[j], A.indptr[j + 1]):
                y[j] += A.data[p] * x[A.indices[p]]

    np.testing.assert_allclose(same_as_serial(transposed, np.zeros(20), A, x), A.T @ x)


def test_triples():
    A, x = matrix(kind="coo"), np.random.default_rng(1).random(20)
    y = np.zeros(30)
    multiply_coo(y, A, x)
    np.testing.assert_allclose(y, A @ x)


def test_a_matrix_is_changed_in_place():
    A, d = matrix(), np.random.default_rng(1).random(30)
    before = A.toarray()
    scale_rows(A, d)
    np.testing.assert_array_equal(A.toarray(), before * d[:, None])
    plan = scale_rows.plan(A, d)
    assert plan.strategy == "independent"
    assert plan.conditions == ("A.indptr has no negative element", "A.indptr never goes down")
    plan.check()


def test_plans_speak_of_the_matrix():
    text = multiply.explain(np.zeros(30), matrix(), np.zeros(20))
    assert text.startswith("multiply(y, A, x)")
    assert "A.indptr" in text
    assert "A_" not in text


def test_a_loop_that_waits_is_inspected():
    x, A = np.random.default_rng(1).random(30), matrix(30, 30)
    same_as_serial(smooth, x, A)
    if orion.runtime.session.current_session().workers > 1:
        assert smooth.plan(x, A, inspect=True).strategy == "inspected"


def test_rows_and_columns_of_sparse_arrays():
    R, w = orion.from_scipy(matrix()), np.random.default_rng(1).random(30)
    np.testing.assert_allclose(same_as_serial(by_rows, np.zeros(30), R, w[:20]), R.to_numpy() @ w[:20])
    np.testing.assert_allclose(same_as_serial(by_columns, np.zeros(20), R, w), R.to_numpy().T @ w)
    plan = by_rows.plan(np.zeros(30), R, w)
    assert plan.strategy == "independent"
    plan.check()


def test_lengths_of_rows_and_columns():
    A = matrix()
    A.data = np.round(64 * A.data)  # whose sums are exact in any order
    same_as_serial(means, np.zeros(30), orion.from_scipy(A))


def test_rows_by_numbers_that_may_count_from_the_end():
    R = orion.from_scipy(matrix())
    same_as_serial(of_users, np.zeros(5), R, np.array([0, -1, 3, -30, 29]))


@pytest.mark.parametrize("user", [30, -31, 1000])
def test_a_row_that_is_not_there(user):
    R = orion.from_scipy(matrix())
    with pytest.raises(OutOfBoundsError, match="30"):
        of_users(np.zeros(2), R, np.array([0, user]))
    with pytest.raises(OutOfBoundsError, match="30"):
        of_users.serial(np.zeros(2), R, np.array([0, user]))


def test_tuples_of_values():
    rng = np.random.default_rng(2)
    keys = rng.integers(0, 9, 40), rng.integers(0, 7, 40)  # equal keys among them
    R = orion.sparse(keys, (rng.random(40), rng.integers(0, 5, 40)), (9, 7))
    same_as_serial(tuples, np.zeros(9), R)
    with pytest.raises(ArgumentError, match="tuples of 2"):
        by_rows(np.zeros(9), R, np.zeros(7))
    with pytest.raises(ArgumentError, match="single numbers"):
        tuples(np.zeros(9), orion.sparse(keys, rng.random(40), (9, 7)))


def test_elements_and_rows_of_one_array():
    R, total = orion.from_scipy(matrix()), np.zeros(20)
    out = np.zeros(30)
    assert elements_and_rows(out, total, R) == R.nnz
    np.testing.assert_allclose(out, R.to_numpy() @ R.to_numpy().sum(axis=0))


def test_two_matrices():
    A, B, x = matrix(), matrix(20, 12, seed=3), np.random.default_rng(1).random(12)
    np.testing.assert_allclose(same_as_serial(product, np.zeros(30), A, B, x), A @ (B @ x))
    same_as_serial(common, np.zeros(30), orion.from_scipy(A), orion.from_scipy(B))


def test_dense_rows_of_pairs_stay_what_they_are():
    @orion.parallel_for
    def lengths(out, polygons):
        for k in range(len(out)):
            for x, y in polygons[k]:
                out[k] += x * y

    same_as_serial(lengths, np.zeros(3), np.random.default_rng(0).random((3, 5, 2)))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda A: A.tocoo(), "is a coo_array"),
        (lambda A: A.tobsr(), "is a bsr_array"),
        (lambda A: A.toarray(), "only SciPy's sparse matrices have it"),
        (orion.from_scipy, "gone through by rows, `for j, v in A"),
    ],
)
def test_other_formats_are_refused(wrong, message):
    multiply(np.zeros(30), matrix(), np.zeros(20))
    with pytest.raises((ArgumentError, UnsupportedLoopError), match=message):
        multiply(np.zeros(30), wrong(matrix()), np.zeros(20))


def test_scipys_rows_are_no_pairs():
    with pytest.raises(ArgumentError, match=r"orion\.from_scipy\(R\)"):
        by_rows(np.zeros(30), matrix(), np.zeros(20))


def test_an_entry_past_the_end_is_said():
    A = matrix()
    A.indices[7] = 99
    y = np.zeros(30)
    with pytest.raises(OutOfBoundsError, match="subscript 99 leaves `x`, which has 20 elements") as told:
        multiply(y, A, np.zeros(20))
    assert "why:  `A.indices[7]` is 99\n  help:" in str(told.value)
    A = matrix()
    A.indptr[7] = 1000
    with pytest.raises(OutOfBoundsError, match=r"leaves `A\.data`"):
        multiply(y, A, np.zeros(20))


def test_subscripts_that_are_floats_are_refused():
    A = matrix()
    A.indptr = A.indptr.astype(float)
    with pytest.raises(UnsupportedLoopError, match="not an integer"):
        multiply(np.zeros(30), A, np.zeros(20))


def test_bounds_that_go_down_are_empty_rows():
    A = matrix()
    A.indptr[15] = 0
    d = np.random.default_rng(0).random(30)
    theirs = A.copy()
    scale_rows.serial(theirs, d)
    scale_rows(A, d)
    np.testing.assert_allclose(A.data, theirs.data)
    plan = scale_rows.plan(A, d)
    assert plan.only.copies
    assert "`A.indptr never goes down` does not hold" in str(plan)


def test_a_matrix_that_changes_between_calls():
    A, d = matrix(), np.full(30, 2.0)
    for place in range(1, 30):
        A.indptr[place] = A.indptr[place - 1]  # one row after the other is emptied
        theirs = A.copy()
        scale_rows.serial(theirs, d)
        scale_rows(A, d)
        np.testing.assert_array_equal(A.data, theirs.data)


@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
def test_frozen_matrices(kind):
    A = matrix(kind=kind)
    B = orion.freeze(A)
    assert type(B) is type(A)
    np.testing.assert_array_equal(B.toarray(), A.toarray())
    name = "row" if kind == "coo" else "indices"
    assert not getattr(B, name).flags.writeable
    assert getattr(A, name).flags.writeable
    assert np.shares_memory(B.data, A.data)
    if kind == "csr":
        scale_rows(B, np.full(30, 3.0))
        assert scale_rows.plan(B, np.ones(30)).strategy == "independent"
    with pytest.raises(ArgumentError, match="pass a NumPy array"):
        orion.freeze([1, 2])


def test_empty_matrices():
    for shape in ((0, 5), (5, 0), (0, 0)):
        A = scipy.sparse.csr_array(shape)
        same_as_serial(multiply, np.zeros(shape[0]), A, np.zeros(shape[1]))
        R = orion.sparse(([], []), [], shape)
        same_as_serial(by_rows, np.zeros(shape[0]), R, np.zeros(shape[1]))


def test_rows_in_python():
    R = orion.sparse(([2, 0, 2, 2], [0, 3, 1, 0]), np.array([4.0, 3.5, 5.0, 6.0]))
    assert R[2] == [(0, 4.0), (0, 6.0), (1, 5.0)]
    assert R[1] == []
    assert R[:, 0] == [(2, 4.0), (2, 6.0)]
    assert R[-1] == R[2]
    for wrong in (3, -4):
        with pytest.raises(OutOfBoundsError):
            R[wrong]
    for wrong in (1.5, slice(2), (1, 2, 3), (slice(1, 2), 0)):
        with pytest.raises(ArgumentError, match="write `R"):
            R[wrong]
    with pytest.raises(ArgumentError, match="3 dimensions"):
        orion.sparse(([0], [0], [0]), [1.0])[0]


@settings(max_examples=times(40, 15), deadline=None)
@given(st.integers(0, 9), st.integers(1, 9), st.integers(0, 40), st.integers(0, 2**32 - 1))
def test_random_arrays_by_rows_and_columns(rows, columns, count, seed):
    rng = np.random.default_rng(seed)
    count = count if rows else 0
    keys = rng.integers(0, max(1, rows), count), rng.integers(0, columns, count)
    R = orion.sparse(keys, rng.integers(-4, 5, count).astype(float), (rows, columns))
    same_as_serial(by_rows, np.zeros(rows), R, rng.random(columns))
    same_as_serial(by_columns, np.zeros(columns), R, rng.random(rows))
    if rows:
        same_as_serial(of_users, np.zeros(6), R, rng.integers(-rows, rows, 6))
    assert [pair for i in range(rows) for pair in R[i]] == [(j, v) for (_, j), v in R]


@pytest.mark.ray
def test_on_ray(workers):
    if workers != 2:
        pytest.skip("with two workers only")
    A, x = matrix(), np.random.default_rng(1).random(20)
    with orion.session("ray", workers=2):
        same_as_serial(multiply, np.zeros(30), A, x)
        same_as_serial(by_rows, np.zeros(30), orion.from_scipy(A), x)
        B = A.copy()
        scale_rows(B, np.arange(30.0))
    np.testing.assert_array_equal(B.toarray(), A.toarray() * np.arange(30.0)[:, None])
