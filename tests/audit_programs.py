"""Small `prange` programs with the verdicts that an audit must give. Names say what arguments are: see `ARGUMENTS`."""

import textwrap

import numpy as np

from tests.audit_doubtful import CONDITIONAL, UNKNOWN

rng = np.random.default_rng(5)
ARGUMENTS = {
    **{name: rng.random(12) for name in ("a", "b", "x", "y", "out", "h", "w", "tmp")},
    **{name: rng.random((12, 12)) for name in ("A", "B", "C")},
    "p": np.array([3, 1, 4, 1, 5, 2, 6, 5]),
    "starts": np.array([0, 3, 4, 8, 9]),
    "n": 8,
    "m": 3,
    "k": 2,
    "c": 0.5,
}

PARALLEL = """
def copies(a, x, n):
    for i in prange(n):
        a[i] = x[i]

def rows(A, x, n, m):
    for i in prange(n):
        for j in range(m):
            A[i, j] = x[j] * A[i, j]

def columns(A, n, m):
    for j in prange(m):
        for i in range(1, n):
            A[i, j] = A[i - 1, j] + 1.0

def shape_by_a_call(A):
    assert np.shape(A)[0] > 0
    n, m = np.shape(A)
    for i in prange(n):
        for j in range(np.shape(A)[1]):
            A[i, j] = A[i, j] + m

def total(x, n):
    s = 0.0
    for i in prange(n):
        s += x[i]
    return s

def product(x, n):
    s = 1.0
    for i in prange(n):
        s *= 1.0 + x[i]
    return s

def largest(x, n):
    s = 0.0
    for i in prange(n):
        s = max(s, x[i])
    return s

def written_sum(x, n):
    s = 0.0
    for i in prange(n):
        s = s + x[i]
    return s

def some(x, n):
    s = 0.0
    for i in prange(n):
        if x[i] > 0.5:
            s += x[i]
    return s

def row_sums(A, out, n, m):
    for i in prange(n):
        s = 0.0
        for j in range(m):
            s += A[i, j]
        out[i] = s

def private(x, out, n):
    for i in prange(n):
        t = x[i] * 2
        out[i] = t + t

def both_branches(x, out, n):
    for i in prange(n):
        if x[i] > 0.5:
            t = 1.0
        else:
            t = x[i]
        out[i] = t

def own_array(x, out, n, m):
    for i in prange(n):
        buffer = np.zeros(m)
        for j in range(m):
            buffer[j] = x[i] * j
        out[i] = buffer.sum()

def view(A, n, m):
    for i in prange(n):
        row = A[i]
        for j in range(m):
            row[j] = i

def even_odd(a, n):
    for i in prange(n // 2):
        a[2 * i] = a[2 * i + 1]

def stencil(a, b, n):
    for i in prange(1, n - 1):
        b[i] = a[i - 1] + a[i + 1]

def only_first(x, out, n):
    for i in prange(n):
        if i == 0:
            out[0] = x[i]

def mirrored(a, b, n):
    for i in prange(n):
        b[n - 1 - i] = a[i]

def gathered(x, p, out, n):
    for i in prange(n):
        out[i] = x[p[i]]

def in_steps(a, n):
    for i in prange(0, n - 1, 2):
        a[i] = a[i + 1]

def blocks(a, x, n):
    for i in prange(n // 2):
        a[2 * i : 2 * i + 2] = x[i]

def constant(x, out, n):
    for i in prange(n):
        if x[i] > 0.5:
            out[0] = 1.0

def last_again(x, out, n):
    for i in prange(n):
        j = i + 1
        out[i] = x[j]
    j = 0
    return j

def halves(a, n):
    for i in prange(n // 2):
        a[i] = a[i + n // 2]

def triangle(A, n):
    for i in prange(n):
        for j in range(i):
            A[i, j] = A[i, i] + 1.0

def swapped(A, n, m):
    for i in prange(n):
        t = A[i, 0]
        A[i, 0] = A[i, 1]
        A[i, 1] = t

def invariant_branch(x, out, n, k):
    t = 1.0
    for i in prange(n):
        if k > 1:
            t = x[i]
        out[i] = t

def searched(A, out, n, m):
    for i in prange(n):
        j = 0
        while j < m and A[i, j] < 0.5:
            j += 1
        out[i] = j

def flattened(out, x, n, m):
    for i in prange(n // 2):
        for j in range(m):
            out[i * m + j] = x[i] * j

def helped(A, out, n):
    for i in prange(n):
        out[i] = norm(A[i])

def recursive(A, out, n):
    for i in prange(n):
        out[i] = depth(A[i], 3)

def vector_sum(A, n):
    acc = np.zeros(12)
    for i in prange(n):
        acc += A[i]
    return acc

def vector_product(A, n):
    acc = np.ones(12)
    for i in prange(n):
        acc *= A[i] + 0.5
    return acc

def made_by_helper(a, n):
    made = fresh(a, n)
    for i in prange(n - 1):
        made[i] = a[i + 1]
    return made
"""

RACES = """
def stencil_in_place(a, n):
    for i in prange(1, n - 1):
        a[i] = a[i - 1] + a[i + 1]

def prefix(a, n):
    for i in prange(1, n):
        a[i] += a[i - 1]

def one_element(out, x, n):
    for i in prange(n):
        out[0] += x[i]

def largest_element(out, x, n):
    for i in prange(n):
        out[0] = max(out[0], x[i])

def halved(out, x, n):
    for i in prange(n):
        out[i // 2] = x[i]

def wrapped(out, x, n):
    for i in prange(n):
        out[i % 2] += x[i]

def neighbours(out, x, n):
    for i in prange(n - 1):
        out[i + 1] = x[i]
        x[i] = out[i]

def twice(out, x, n):
    for i in prange(n - 1):
        out[i] = x[i]
        out[i + 1] = 2 * x[i]

def shared_buffer(x, out, tmp, n, m):
    for i in prange(n):
        for j in range(m):
            tmp[j] = x[i] * j
        out[i] = tmp[0] + tmp[1]

def shared_scalar_buffer(x, out, tmp, n):
    for i in prange(n):
        tmp[0] = x[i]
        out[i] = tmp[0] * 2

def previous(x, out, n):
    p = 0.0
    for i in prange(n):
        out[i] = x[i] - p
        p = x[i]

def partial_sums(x, out, n):
    s = 0.0
    for i in prange(n):
        s += x[i]
        out[i] = s

def counter(x, out, n):
    j = 0
    for i in prange(n):
        out[j] = x[i]
        j += 1

def last_value(x, n):
    v = 0.0
    for i in prange(n):
        v = x[i]
    return v

def column_sums(A, out, n, m):
    for i in prange(n):
        for j in range(m):
            out[j] += A[i, j]

def rows_above(A, n, m):
    for i in prange(1, n):
        for j in range(m):
            A[i, j] = A[i - 1, j] + 1.0

def transposed(A, n):
    for i in prange(n):
        for j in range(n):
            A[i, j] = A[j, i] + 1.0

def slices(out, x, n):
    for i in prange(n):
        out[i : i + 2] = x[i]

def whole(out, x, n):
    for i in prange(n):
        out[:] += x[i]

def backwards(a, n):
    for i in prange(n - 1, 0, -1):
        a[i] = a[i - 1]

def reversal(a, n):
    for i in prange(n):
        a[i] = a[n - 1 - i]

def view_above(A, n, m):
    for i in prange(1, n):
        row = A[i - 1]
        for j in range(m):
            A[i, j] = row[j]

def index_stored(out, n):
    for i in prange(n):
        out[0] = i

def two_names(x, out, n):
    u = 0.0
    for i in prange(n):
        t = u
        u = x[i]
        out[i] = t

def by_helper(A, out, n):
    for i in prange(n):
        out[0] += norm(A[i])

def diagonals(A, n):
    for i in prange(n - 1):
        for j in range(n - 1):
            A[i + 1, j + 1] = A[i, j]

def flattened_above(out, x, n, m):
    for i in prange(1, n // 2):
        for j in range(m):
            out[i * m + j] = out[(i - 1) * m + j] + x[i]

def alias(x, n):
    y = x
    for i in prange(1, n):
        y[i] = x[i - 1]
"""

HELPERS = """
@njit
def norm(v):
    s = 0.0
    for q in range(len(v)):
        s += v[q] * v[q]
    return s

@njit
def depth(v, n):
    if n == 0:
        return v[0]
    return depth(v, n - 1) + 1.0

@njit
def fresh(v, n):
    made = np.zeros(n)
    for q in range(n):
        made[q] = v[0]
    return made

@njit
def tail(v):
    return v[1:]

@njit
def two_views(v):
    return v[1:], v[:-1]

@njit
def writes_third(v, third):
    np.add(v, 1.0, third)
    return v[0]

@vectorize
def doubled(q):
    return q * 2
"""

HEAD = """import numba
import numpy as np
from numba import njit, prange, vectorize
"""

EXPECTED = {"parallel": PARALLEL, "race": RACES, "conditional": CONDITIONAL, "unknown": UNKNOWN}


def programs() -> dict[str, tuple[str, str]]:
    """The verdict and the source of each program, by its name."""
    found = {}
    for verdict, text in EXPECTED.items():
        for part in text.strip().split("\n\n"):
            name = part.partition("def ")[2].partition("(")[0]
            found[name] = verdict, textwrap.dedent(part) + "\n"
    return found


def whole_file() -> str:
    """All programs as one file."""
    parts = [f"@njit(parallel=True)\n{text}" for _, text in programs().values()]
    return "\n".join([HEAD, HELPERS, *parts])


def function_of(name: str, loop: object = range):
    """A program as a function, whose `prange` is this."""
    scope = {"np": np, "njit": lambda f: f, "vectorize": lambda f: f, "prange": loop}
    exec(HELPERS + programs()[name][1], scope)  # the text is ours
    return scope[name]


def arguments_of(function) -> dict[str, object]:
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    return {name: ARGUMENTS[name].copy() if hasattr(ARGUMENTS[name], "copy") else ARGUMENTS[name] for name in names}
