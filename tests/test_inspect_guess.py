"""Argument types guessed from the body of a function."""

import numpy as np
import pytest

from orion.cli.guess import Known, guess_types
from orion.frontend.parse import parse_function
from orion.ir.types import ArrayType, ScalarType, SparseType
from tests.inspect_loops import CASES, through_view


def by_views(W, g, n):
    for i in range(n):
        w = W[i]
        w -= 0.1 * (w @ g) * g


def by_methods(A, B, C):
    for i in range(A.shape[0]):
        B[i] = A[i].sum()
        C[i, :] = A[i]


def by_data(indptr, indices, x, y):
    for i in range(len(indptr) - 1):
        for p in range(indptr[i], indptr[i + 1]):
            y[i] += x[indices[p]]


def by_values(pairs, a, scale):
    for (i,), (r, weight) in pairs:
        a[i] += scale * r * weight


def by_norms(X, out, limit):
    for i in range(X.shape[0]):
        if np.linalg.norm(X[i]) < limit:
            out[i] = 1.0


def by_bits(flags, masks, shift, out):
    for i in range(flags.shape[0]):
        out[i] = (flags[i] & ~masks[i]) >> shift


def by_names(labels, start, counts, half):
    for i in range(labels.shape[0]):
        k = labels[i] + start
        m = int(half * 2.0)
        counts[k] += m
        for j in range(m):
            counts[j] += 1.0


def by_bins(rows, counts):
    for (i,), (k, weight) in rows:
        counts[i, k] += weight


def by_dots(A, x, y):
    for i in range(A.shape[0]):
        y[i] = A[i].dot(x)


def by_tests(x, y, n):
    for i in range(n):
        if (x[i] > 0.0) & (y[i] > 0.0):
            y[i] = 1.0


def dense(rank, dtype="float64"):
    return ArrayType(dtype, rank)


FLOAT, INTEGER = ScalarType("float64", weak=True), ScalarType("int64", weak=True)

EXPECTED = {
    by_views: {"W": dense(2), "g": dense(1), "n": INTEGER},
    by_methods: {"A": dense(2), "B": dense(1), "C": dense(2)},
    by_data: {"indptr": dense(1, "int64"), "indices": dense(1, "int64"), "x": dense(1), "y": dense(1)},
    by_values: {"pairs": SparseType(1, "int32", ("float32",) * 2, single=False), "a": dense(1), "scale": FLOAT},
    by_norms: {"X": dense(2), "out": dense(1), "limit": FLOAT},
    by_bits: {"flags": dense(1, "int64"), "masks": dense(1, "int64"), "shift": INTEGER, "out": dense(1)},
    by_names: {"labels": dense(1, "int64"), "start": INTEGER, "counts": dense(1), "half": FLOAT},
    by_bins: {"rows": SparseType(1, "int32", ("int64", "float32"), single=False), "counts": dense(2)},
    by_dots: {"A": dense(2), "x": dense(1), "y": dense(1)},
    by_tests: {"x": dense(1), "y": dense(1), "n": INTEGER},
}


@pytest.mark.parametrize("function", EXPECTED, ids=lambda function: function.__name__)
def test_guesses(function):
    assert guess_types(parse_function(function)) == EXPECTED[function]


# `w = W[i]; w -= …` reads the same for rows and for single elements: no rank can be guessed from it.
@pytest.mark.parametrize(
    "function", [one for one in CASES if one is not through_view], ids=lambda function: function.__name__
)
def test_ranks_of_real_loops(function):
    types, _ = CASES[function]
    guessed = guess_types(parse_function(function))
    assert {name: getattr(kind, "ndim", 0) for name, kind in guessed.items()} == {
        name: getattr(kind, "ndim", 0) for name, kind in types.items()
    }


def test_what_is_said_goes_before_what_is_guessed():
    known = Known(ranks={"W": 3}, dtypes={"g": "float32"}, scalars={"n": "float"})
    assert guess_types(parse_function(by_views), known) == {"W": dense(3), "g": dense(1, "float32"), "n": FLOAT}
    known = Known(dtypes={"pairs": "float64", "scale": "float32"})
    assert guess_types(parse_function(by_values), known) == {
        "pairs": SparseType(1, "int32", ("float64",) * 2, single=False),
        "a": dense(1),
        "scale": ScalarType("float32"),
    }
    known = Known(sparse={"limit": 2})
    assert guess_types(parse_function(by_norms), known)["limit"] == SparseType(2, "int32", ("float32",))


def test_parameters_keep_their_order():
    assert list(guess_types(parse_function(by_data))) == ["indptr", "indices", "x", "y"]
