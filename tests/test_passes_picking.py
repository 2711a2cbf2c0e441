"""Arrays and masks as subscripts on the right, and subscripts of expressions: what NumPy picks, and its errors."""

import numpy as np
import pytest

import orion
from tests.serial_results import assert_as_serial
from tests.trials import one_in

pytestmark = pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")

X = np.arange(24.0).reshape(6, 4) ** 1.5
V = np.array([3.0, -1.0, 0.5, 7.0, 2.0, -4.0])
IDX = np.array([5, 0, -1, 3, 3, -6])
MASK = np.array([True, False, True, True, False, True])


def places(X, v, idx, mask):
    return v[idx]


def places_of_rows(X, v, idx, mask):
    return X[idx]


def places_of_columns(X, v, idx, mask):
    out = np.zeros(3)
    for k in range(3):
        cols = idx[k:] % 4
        out[k] = X[:, cols].sum()
    return out


def of_one_row(X, v, idx, mask):
    out = np.zeros(X.shape[0])
    for i in range(X.shape[0]):
        out[i] = X[i, idx % 4].sum() + X[i][idx[:2] % 4].max()
    return out


def weighted(X, v, idx, mask):
    out = np.zeros(X.shape[0])
    for i in range(X.shape[0]):
        near = np.argsort(np.abs(v - v[i]))[1:4]
        w = 1.0 / (1.0 + v[near] ** 2)
        out[i] = (w * X[near][:, 0]).sum() / w.sum()
    return out


def sum_where(X, v, idx, mask):
    return v[mask].sum() + v[v > 0].sum()


def rows_where(X, v, idx, mask):
    total = 0.0
    for k in range(3):
        A = X[mask]
        b = v[~mask]
        total += (A.T @ A)[0, 1] + b.mean() * k
    return total


def matrix_where(X, v, idx, mask):
    return X[X > 9.0].sum()


def folds(X, v, idx, mask):
    errors = np.zeros(3)
    for f in range(3):
        test = np.arange(len(v)) % 3 == f
        w = np.linalg.solve(X[~test].T @ X[~test] + np.eye(4), X[~test].T @ v[~test])
        errors[f] = np.mean((v[test] - X[test] @ w) ** 2)
    return errors


def renamed(X, v, idx, mask):
    v = v[idx]
    v = v[v > 0]
    return v.sum()


def in_tests(X, v, idx, mask):
    n = 0
    while v[idx][n] > 2.5 and n < 5:
        n += 1
    if v[mask].max() > 1.0:
        n += 10
    for _ in range(int(np.sort(v)[5])):
        n += 100
    return n


def nothing_picked(X, v, idx, mask):
    return v[v > 1e9].sum()


def nested(X, v, idx, mask):
    return v[idx[mask]].sum() + v[v[idx] > 0.0].sum() * 3.0


def parts_in_loops(X, v, idx, mask):
    total = 0.0
    for k in range(4):
        total += len(v[idx[:k]]) + v[mask[:0]].sum() + v[idx[k:]][0] + X[idx[k]][1]
    return total


def parts_of_expressions(X, v, idx, mask):
    return np.sort(v)[::-1][0] + (v * 2.0)[1:3].sum() + np.argsort(v)[0] + X.sum(axis=0)[2] + (-v)[1]


def narrow(X, v, idx, mask):
    total = 0
    small = idx.astype(np.int8)
    for k in range(4):
        total += v[small].sum() + k
    return total


def put_in_other_orders(X, v, idx, mask):
    order = np.argsort(v)
    for _ in range(3):
        order = order[order]
        v = v[order]
        for i in range(len(v)):
            v[i] += order[i]
    return v, order


FUNCTIONS = [
    places, places_of_rows, places_of_columns, of_one_row, weighted, sum_where, rows_where, matrix_where, folds,
    renamed, in_tests, nothing_picked, nested, put_in_other_orders, parts_in_loops, parts_of_expressions, narrow,
]  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda one: one.__name__)
def test_picks_what_numpy_does(function):
    assert_as_serial(function, X, V, IDX, MASK, workers=(1, 2, 4))


@pytest.mark.ray
def test_picks_what_numpy_does_on_ray():
    with orion.session("ray", workers=2, force_parallel=True):
        for function in one_in(3, (weighted, folds, sum_where)):
            np.testing.assert_allclose(orion.parallel_for(function)(X, V, IDX, MASK), function(X, V, IDX, MASK))


@pytest.mark.parametrize("idx", [[6], [0, -7], [10**9]])
def test_places_outside_are_index_errors(idx):
    assert_as_serial(places, X, V, np.array(idx), MASK)
    with pytest.raises(IndexError, match=r"v\[idx\]|idx"):
        orion.parallel_for(places)(X, V, np.array(idx), MASK)


@pytest.mark.parametrize("length", [1, 5, 7])
@pytest.mark.parametrize("value", [True, False])
@pytest.mark.parametrize("function", [sum_where, rows_where], ids=lambda one: one.__name__)
def test_masks_of_other_lengths_are_index_errors(function, length, value):
    mask = np.full(length, value)
    with pytest.raises(IndexError):
        function(X, V, IDX, mask)
    with pytest.raises(IndexError):
        orion.parallel_for(function)(X, V, IDX, mask)


REFUSED = [
    ("v[idx] = 0.0", "an array of subscripts that is written to"),
    ("v[mask] = 0.0", "a mask as a subscript that is written to"),
    ("v[idx] += 1.0", "an array of subscripts that is written to"),
    ("k = v[idx].sum() if n > 3 else 0.0", "it may not be evaluated"),
    ("k = np.sort(v)[0] if n > 3 else 0.0", "it may not be evaluated"),
    ("k = X[idx, idx].sum()", "several arrays as subscripts"),
    ("k = X[1:3, idx].sum()", "beside a slice or a number"),
    ("k = X[idx, 1].sum()", "before a number"),
]


@pytest.mark.parametrize(("line", "words"), REFUSED)
def test_what_is_not_picked_is_refused(line, words):
    from orion.ir.types import ArrayType, ScalarType
    from orion.pipeline import through_passes
    from tests.loop_text import from_body

    types = {
        "X": ArrayType("float64", 2), "v": ArrayType("float64", 1), "idx": ArrayType("int64", 1),
        "mask": ArrayType("bool", 1), "n": ScalarType("int64", True),
    }  # fmt: skip
    with pytest.raises(orion.UnsupportedLoopError, match=words):
        through_passes(from_body(f"for i in range(n):\n    {line}", ", ".join(types)), types)
