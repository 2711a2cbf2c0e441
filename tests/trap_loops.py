"""Loops that parallelizing compilers have run in parallel, or silently computed, wrongly.

Values are whole numbers, so that every order of additions gives the same bits.
"""

import numpy as np

N = 1000


def whole(*shape):
    return np.random.default_rng(3).integers(-9, 9, shape).astype(np.float64)


def few_sums(x, y):
    for i in range(x.shape[0]):
        y[i % 4] += x[i]


def stencil(a):
    for i in range(1, a.shape[0] - 1):
        a[i] = (a[i - 1] + a[i] + a[i + 1]) / 4


def two_writes(a, b, e, c):
    for i in range(a.shape[0] - 1):
        a[i + 1] = b[i] + e[i]
        a[i] = b[i] + c[i]


def even_odd(a, x):
    for i in range(x.shape[0]):
        a[2 * i] = a[2 * i + 1] + x[i]


def chain(a):
    for i in range(1, a.shape[0]):
        a[i] = a[i - 1] + 1


def counted_under_if(n):
    c = 0
    for i in range(n):
        c += 1
        if i > 10:
            c += 1
    return c


def started_at_two(cond):
    s = 2
    for i in range(cond.shape[0]):
        if cond[i]:
            s += 1
    return s


def in_two_branches(flag, n):
    r = 0
    if flag:
        for _i in range(n):
            r += 1
    else:
        for _i in range(n):
            r -= 3
    return r


def one_after_the_other(a, c, d):
    for i in range(1, a.shape[0]):
        c[i] = a[i] * 2
    for i in range(1, a.shape[0]):
        d[i] = c[i - 1] + 1


def negative_subscripts(x, k, m):
    total = 0.0
    for i in range(-k, m):
        for j in range(-k, m):
            total += x[i] * x[j]
    return total


def running_sum(d, a):
    t = 0.0
    for i in range(a.shape[0]):
        t = t + d[i]
        a[i] = t


def last_value(a):
    last = 0.0
    for i in range(a.shape[0]):
        last = a[i]
    return last


def write_under_condition(m, a, b, c):
    for i in range(a.shape[0] - 1):
        if m[i]:
            a[i] = b[i]
        c[i] = a[i + 1]


def through_a_view(W, g):
    for i in range(W.shape[0] - 1):
        w = W[i]
        w -= g * W[i + 1]


def mirrored(a, c):
    for i in range(3):
        a[i + c] = a[c - i] + 1


def any_then_one(A, B):
    for i in range(B.shape[0]):
        for j in range(1, A.shape[0]):
            A[j] = A[j - 1] + B[i]


def repeated_index(a, idx, x):
    for i in range(idx.shape[0]):
        a[idx[i]] += x[i]


def changed_bound(a, n):
    for i in range(n):
        n = n - 1
        a[i] = n
        i = i + 5
        a[i] += 1
    return n


def row(W, i):
    return W[i]


def view_from_a_function(W):
    for i in range(W.shape[0] - 1):
        w = row(W, i + 1)
        w += W[i]


def view_of_one_of_two_rows(W, c):
    for i in range(W.shape[0] - 1):
        x = W[i]
        if c[i] > 0:
            x = W[i + 1]
        x[0] = x[1] + 1


def bump(x, y):
    y += x


def written_by_a_function(W):
    for i in range(W.shape[0] - 1):
        bump(W[i], W[i + 1])


def view_of_a_view(W):
    for i in range(W.shape[0] - 1):
        w = W[i + 1][1:]
        v = w[:2]
        v += W[i, 1:3]


def filled(W):
    for i in range(W.shape[0] - 1):
        W[i + 1].fill(W[i, 0] + 1)


def another_name(W):
    V = W
    for i in range(W.shape[0] - 1):
        V[i + 1] = W[i] + 1


def own_counter(W):
    n = 0
    for i in range(W.shape[0] - 1):
        n += 1  # noqa: SIM113
        W[n] = W[i] + 1


def reassigned_variable(W):
    for i in range(W.shape[0] - 1):
        i = i + 1
        W[i] = W[i - 1] + 1


def history(hist, a):
    for t in range(hist.shape[0]):
        s = 0.0
        for i in range(a.shape[0]):
            s += a[i]
        hist[t] = s / a.size
        for i in range(a.shape[0]):
            a[i] = a[i] + 1
    return hist[0]


def left_early(a, m):
    count = 0
    for i in range(m):
        if a[i] < 0:
            continue
        k = 0
        while k < 3:
            k += 1
            if a[i] > 5:
                break
        count += k
    return count


def shifted_by_half(A):
    n = A.shape[0]
    h = n // 2
    for i in range(h):
        A[i] = A[i + h] * 2


def broken_off(a, b):
    for i in range(a.shape[0]):
        if a[i] > 7:
            break
        b[i] = a[i]


def view_of_two_arrays(W, H, c):
    for i in range(W.shape[0]):
        if c[i] > 0:
            w = W[i]
        else:
            w = H[i]
        w += 1.0


def view_of_a_row_of_its_own(W):
    for i in range(W.shape[0]):
        w = W[i] * 2
        v = w
        w = W[i] + 1
        v[0] = w[1]
        W[i, 2] = v[0] + w[0]


def column_sums(matrix, sums):
    for (_i, j), v in matrix:
        sums[j] += v


def shifted_view(a, b):
    for i in range(a.shape[0] - 1):
        a[i + 1] = b[i] * 2


def mirrored_apart(a, c):
    for i in range(3):
        a[i + c] = a[c - i] + 1


# name of the loop -> its arguments, and the strategies of its loops
TRAPS = {
    few_sums: (lambda: (whole(N), np.zeros(4)), ["independent"]),
    stencil: (lambda: (whole(N),), ["serial"]),
    two_writes: (lambda: (whole(N), whole(N), whole(N), whole(N)), ["independent"]),
    even_odd: (lambda: (whole(2 * N), whole(N)), ["independent"]),
    chain: (lambda: (whole(N),), ["serial"]),
    counted_under_if: (lambda: (N,), ["independent"]),
    started_at_two: (lambda: (whole(N) > 0,), ["independent"]),
    in_two_branches: (lambda: (True, N), ["independent", "independent"]),
    one_after_the_other: (lambda: (whole(N), whole(N), whole(N)), ["independent", "independent"]),
    negative_subscripts: (lambda: (whole(50), 7, 20), ["independent"]),
    running_sum: (lambda: (whole(N), whole(N)), ["serial"]),
    last_value: (lambda: (whole(N),), ["independent"]),
    write_under_condition: (lambda: (whole(N) > 0, whole(N), whole(N), whole(N)), ["independent"]),
    through_a_view: (lambda: (whole(50, 4), 2.0), ["independent"]),
    mirrored: (lambda: (whole(3), 0), ["serial"]),
    mirrored_apart: (lambda: (whole(20), 5), ["independent"]),
    any_then_one: (lambda: (whole(30), whole(20)), ["wavefront"]),
    repeated_index: (lambda: (whole(9), np.abs(whole(N)).astype(np.int64) % 9, whole(N)), ["independent"]),
    changed_bound: (lambda: (whole(2 * N), N), ["serial"]),
    view_from_a_function: (lambda: (whole(8, 4),), ["serial"]),
    view_of_one_of_two_rows: (lambda: (whole(8, 4), whole(8)), ["serial"]),
    written_by_a_function: (lambda: (whole(8, 4),), ["serial"]),
    view_of_a_view: (lambda: (whole(8, 4),), ["serial"]),
    filled: (lambda: (whole(8, 4),), ["serial"]),
    another_name: (lambda: (whole(8, 4),), ["serial"]),
    own_counter: (lambda: (whole(8, 4),), ["serial"]),
    reassigned_variable: (lambda: (whole(8, 4),), ["serial"]),
    history: (lambda: (np.zeros(5), whole(N)), ["independent", "independent"]),
    left_early: (lambda: (whole(N), N), ["independent"]),
    view_of_two_arrays: (lambda: (whole(8, 4), whole(8, 4), whole(8)), ["serial"]),
    view_of_a_row_of_its_own: (lambda: (whole(8, 4),), ["independent"]),
    shifted_by_half: (lambda: (whole(40, 3),), ["independent"]),
    broken_off: (lambda: (whole(N), np.zeros(N)), ["serial"]),
}

# name of the loop -> the number of the trap, and what goes wrong elsewhere. "15 too" is another case of trap 15, "own"
# one that is not from another compiler: then the words say what has to be seen.
STORIES = {
    few_sums: (1, "run in parallel with updates lost: 650,000 of a million counted"),
    stencil: (2, "run in parallel: wrong in four of five runs, or in 43 % of the elements"),
    two_writes: (3, "the two writes of one element change places: the last element is wrong in every run"),
    even_odd: (4, "refused, though no two iterations touch the same element"),
    chain: (5, "run in parallel without a warning"),
    counted_under_if: (6, "counted wrongly: the sum under the condition is not recognized"),
    started_at_two: (7, "the first value is added once per thread"),
    in_two_branches: (8, "wrong where the flag is true"),
    one_after_the_other: (9, "the two loops are merged, and values are read before they are written"),
    negative_subscripts: (10, "wrong total: negative subscripts, which count from the end, are not seen as such"),
    running_sum: (11, "taken for a plain reduction, though the sum is used in the body"),
    last_value: (12, "the value of any thread is returned"),
    write_under_condition: (13, "the dependence on the write under the condition is dropped"),
    shifted_view: (14, "`a` and `b` may be views of one array, the overlap is not seen (Orion refuses such a call)"),
    through_a_view: (15, "the write through the view is not seen"),
    view_from_a_function: ("15 too", "a function returns the view"),
    view_of_one_of_two_rows: ("15 too", "the view may be of one of two rows"),
    written_by_a_function: ("15 too", "a function writes to the view"),
    view_of_a_view: ("15 too", "it is a view of a view"),
    filled: ("15 too", "a method writes to the view"),
    another_name: ("15 too", "the array has another name"),
    view_of_two_arrays: ("15 too", "the view may be of one of two arrays"),
    view_of_a_row_of_its_own: ("15 too", "this is no view but a new row"),
    mirrored: (16, "the sign of `c - i` is lost, and the dependence with it"),
    mirrored_apart: ("16 too", "no two iterations meet in this call: 5, 6 and 7 are written, 5, 4 and 3 read"),
    any_then_one: (17, "the distance (1, -1) is missed when the nest is skewed"),
    repeated_index: (18, "updates of elements that `idx` names twice are lost"),
    column_sums: (19, "run row by row in parallel: rows share columns, and updates are lost"),
    changed_bound: (20, "wrong number of trips: the bound and the variable are assigned in the body"),
    own_counter: ("own", "the subscript is a counter that the body adds to"),
    reassigned_variable: ("20 too", "the variable is assigned, and used as a subscript"),
    history: ("own", "`s` is a sum of its own in every round"),
    left_early: ("own", "`continue` and the `break` of the inner loop keep iterations apart"),
    broken_off: ("own", "the `break` decides which iterations run"),
    shifted_by_half: ("own", "`h = n // 2` keeps what is written and what is read apart"),
}
