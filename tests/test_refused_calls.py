"""What a call refuses before it runs, its plan, its text, its kernels' source and its measurement refuse in the same
words."""

import numpy as np
import pytest
from scipy import sparse

import orion


@orion.parallel_for
def three(A, lab, out):
    for i in range(A.shape[0]):
        out[i] = A[i] + lab[i]


@orion.parallel_for
def copied(a, b):
    for i in range(a.shape[0]):
        b[i] = a[i]


@orion.parallel_for
def filled(a, n):
    for i in range(n):
        a[i] = 2.0


@orion.parallel_for
def product(A, x, y):
    for i in range(A.shape[0]):
        y[i] = A[i] @ x


@orion.parallel_for
def stored(r, s):
    for (i, j), v in r:
        r[i, j] = 2.0 * v
    for (i, j), v in s:
        s[i, j] = 2.0 * v


@orion.parallel_for
def rated(ratings, W):
    for (i, _j), r in ratings:
        W[i] += r


@orion.parallel_for
def rescaled(M, d):
    for p in range(M.nnz):
        M.data[p] = d[p]


@orion.parallel_for
def late(w, w_buf, x):
    for i in range(x.shape[0]):
        w_buf[i] += x[i]


@orion.parallel_for
def made(n, a):
    t = np.zeros(n)
    for i in range(a.shape[0]):
        t[i] = a[i]
    for i in range(a.shape[0]):
        a[i] = 2.0 * t[i]


@orion.parallel_for
def a_thousand_more(x, y):
    for i in range(x.shape[0]):
        y[i] = x[i] + 1000


@orion.parallel_for
def a_thousand_added(x):
    for i in range(x.shape[0]):
        x[i] += 1000


@orion.parallel_for
def shifted_far(x, y):
    for i in range(x.shape[0]):
        y[i] = x[i] >> 1000


@orion.parallel_for
def limited(x):
    for i in range(x.shape[0]):
        x[i] = np.minimum(x[i], 1000)


@orion.parallel_for
def made_infinite(x):
    for i in range(x.shape[0]):
        x[i] = np.inf


def begins_with_two(row):
    row[0] = 2.0
    return 1.0


@orion.parallel_for
def written_between(A, y):
    for i in range(A.shape[0]):
        y[i] = A[i, 0] + begins_with_two(A[i]) + A[i, 0]


@orion.parallel_for
def in_column(A, k):
    for i in range(A.shape[0]):
        A[i, k] = 1.0


@orion.parallel_for
def in_moved_column(A, k):
    for i in range(A.shape[0]):
        A[i, i + k] = 1.0


@orion.parallel_for
def from_number(a, k):
    for i in range(int(k), a.shape[0]):
        a[i] += 1.0


def numbers(count=10):
    return np.arange(float(count))


def read_only():
    found = numbers()
    found.flags.writeable = False
    return found


def cells(*keys, shape=None):
    return orion.sparse((np.array(keys), np.array(keys)), np.ones(len(keys)), shape=shape)


def overlapping():
    return np.lib.stride_tricks.as_strided(numbers(), (4,), (0,))


def twice(make):
    one = make()
    return one, one


def matrix_and_its_values():
    one = sparse.random(10, 10, 0.3, format="csr", rng=0)
    return one, one.data


def late_by_a_view():
    w = numbers()
    return w[:], orion.buffer(w), numbers()


def late_with_a_part():
    w = numbers()
    return w, orion.buffer(w), w[:5]


BYTES, ONES = np.ones(5, np.uint8), np.ones(5)
ALIAS, BOUNDS, ARGUMENT, UNSUPPORTED = (
    orion.AliasError, orion.OutOfBoundsError, orion.ArgumentError, orion.UnsupportedLoopError,
)  # fmt: skip

REFUSED = [
    (three, lambda: (numbers(), *twice(numbers)), ALIAS, "`lab` and `out` share memory"),
    (copied, lambda: (numbers()[:5], numbers()[:4]), BOUNDS, "`b[i]` leaves `b`"),
    (copied, lambda: twice(lambda: orion.array(numbers())), ALIAS, "`a` and `b` share memory"),
    (product, lambda: (np.ones((4, 4)), np.ones(4), overlapping()), ALIAS, "share memory with each other"),
    (product, lambda: (np.ones((4, 4)), np.ones(5), np.ones(4)), ARGUMENT, "differ in length: 4 and 5"),
    (filled, lambda: (numbers(), 11), BOUNDS, "the loop reaches i = 10"),
    (filled, lambda: (numbers(), 2**70), ARGUMENT, "more than 64 bits"),
    (filled, lambda: (numbers(), 1.5), UNSUPPORTED, "not an integer"),
    (made, lambda: (5, numbers()), BOUNDS, "`t[i]` leaves `t`"),
    (made, lambda: (-5, numbers()), ARGUMENT, "-5"),
    (stored, lambda: twice(lambda: cells(0, 1)), ALIAS, "the same sparse array"),
    (stored, lambda: (cells(1, 1), cells(0)), ARGUMENT, "more than once"),
    (rated, lambda: (cells(0, 6), numbers(4)), BOUNDS, "`W[i]` leaves `W`"),
    (rescaled, matrix_and_its_values, ALIAS, "`M.data` share memory"),
    (late, late_by_a_view, ALIAS, "`w_buf.array` share memory"),
    (late, late_with_a_part, ALIAS, "`w` and `x` share memory"),
    (copied, lambda: (numbers(), read_only()), UNSUPPORTED, "read-only"),
    (copied, lambda: (numbers().astype(object), numbers()), ARGUMENT, "array of objects"),
    (copied, lambda: (numbers().astype(np.float16), numbers()), ARGUMENT, "float16"),
    (copied, lambda: (numbers().astype(">f8"), numbers()), ARGUMENT, "byte order"),
    (copied, lambda: ([1.0], numbers()), ARGUMENT, "`a`"),
    (copied, lambda: (None, numbers()), ARGUMENT, "`a`"),
    (copied, lambda: (np.array(1.0), numbers()), ARGUMENT, "without dimensions"),
    (copied, lambda: (numbers() + 1j, numbers()), UNSUPPORTED, "complex"),
    (copied, lambda: (numbers(),), ARGUMENT, "missing"),
    (copied, lambda: (numbers(), numbers(), 1), ARGUMENT, "too many"),
    (a_thousand_more, lambda: (BYTES, ONES), UNSUPPORTED, "1000 does not fit uint8"),
    (a_thousand_added, lambda: (BYTES,), UNSUPPORTED, "1000 does not fit uint8"),
    (shifted_far, lambda: (BYTES, ONES), UNSUPPORTED, "1000 does not fit uint8"),
    (limited, lambda: (BYTES,), UNSUPPORTED, "1000 does not fit uint8"),
    (made_infinite, lambda: (BYTES,), UNSUPPORTED, "inf does not fit uint8"),
    (in_column, lambda: (np.ones((5, 4)), 4), BOUNDS, "4, and `k` is 4\n  help: make `A` larger in dimension 1, pa"),
    (in_column, lambda: (np.ones((5, 4)), -5), BOUNDS, "which takes subscripts in -4 … 3 there"),
    (in_moved_column, lambda: (np.ones((5, 4)), 1), BOUNDS, "`k` is 1, and the loop reaches i = 3"),
    (from_number, lambda: (numbers(), np.array([3])), UNSUPPORTED, "`int(k[0])`, or pass the number, `k.item()`"),
    (written_between, lambda: (np.ones((4, 4)), np.ones(4)), UNSUPPORTED, "`begins_with_two` may write an array"),
]  # fmt: skip


def refusal(asked, arguments):
    with pytest.raises(orion.OrionError) as told:
        asked(*arguments)
    return type(told.value), str(told.value)


@pytest.mark.parametrize("force_parallel", [False, True])
@pytest.mark.parametrize(
    ("loop", "arguments", "error", "words"),
    REFUSED,
    ids=[f"{number}-{loop.__name__}" for number, (loop, *_) in enumerate(REFUSED)],
)
def test_what_a_call_refuses_its_plan_refuses(loop, arguments, error, words, force_parallel):
    given = arguments()
    with orion.session(workers=2, force_parallel=force_parallel):
        refused = refusal(loop, given)
        assert refused[0] is error
        assert words in refused[1]
        for asked in (loop.plan, loop.explain, loop.kernel_source, loop.measure):
            assert refusal(asked, given) == refused
            assert refusal(asked, given) == refused  # nothing is kept of it


def test_a_plan_that_was_made_refuses_the_next_arguments():
    first = three.plan(numbers(), numbers(), numbers())
    assert first.strategy == "independent"
    same = numbers()
    assert refusal(three.plan, (numbers(), same, same)) == refusal(three, (numbers(), same, same))


def test_arrays_that_share_memory_and_are_only_read_are_planned():
    same = numbers()
    assert three.plan(same, same, numbers()).is_parallel
