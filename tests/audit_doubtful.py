"""Small `prange` programs for which an audit must say `conditional` or `unknown`: a part of `audit_programs`."""

CONDITIONAL = """
def histogram(h, p):
    for i in prange(len(p)):
        h[p[i]] += 1.0

def scattered(out, x, p):
    for i in prange(len(p)):
        out[p[i]] = x[i]

def shifted(a, k, n):
    for i in prange(n):
        a[i + k] = a[i]

def chunks(starts, x, out):
    for c in prange(len(starts) - 1):
        for i in range(starts[c], starts[c + 1]):
            out[i] = 2 * x[i]

def guarded(x, out, n):
    for i in prange(n):
        if x[i] > 0.5:
            out[0] = x[i]

def found(x, n):
    f = False
    for i in prange(n):
        if x[i] > 0.5:
            f = True
    return f

def best(x, n):
    b = 0.0
    at = 0
    for i in prange(n):
        if x[i] > b:
            b = x[i]
            at = i
    return at

def kept(x, out, n):
    t = 0.0
    for i in prange(n):
        if x[i] > 0.5:
            t = x[i]
        out[i] = t

def windows(out, x, n, m):
    for i in prange(n):
        for j in range(m):
            out[i + j] = x[i + j]

def behind(out, x, n):
    for i in prange(n):
        out[i - 1] = x[i]

def asked(a, k, n):
    for i in prange(1, n):
        if k > 5:
            a[i] = a[i - 1]

def few_trips(out, x, n):
    if n <= 1:
        for i in prange(n):
            out[0] += x[i]

def left_before(out, x, n):
    if n > 1:
        return
    for i in prange(n):
        out[0] += x[i]

def refused_before(out, x, n):
    if n > 1:
        raise ValueError
    for i in prange(n):
        out[0] += x[i]

def asserted_before(out, x, n):
    assert n == 1
    for i in prange(n):
        out[0] += x[i]

def least_trips(out, x, n):
    few = min(n, 1)
    for i in prange(few):
        out[0] += x[i]

def one_element_long(out, x):
    made = np.zeros(1)
    for i in prange(len(made)):
        out[0] += x[i]

def remainder(out, x, n):
    rest = n % 2
    for i in prange(rest):
        out[0] += x[i]

def chosen_trips(out, x, n):
    few = n if n < 2 else 1
    for i in prange(few):
        out[0] += x[i]

def pair_of_bounds(out, x, k):
    before = 0.0
    for i in prange(k, k + 1):
        out[i] = before
        before = x[i]

def short_loop_around(out, x):
    for t in range(2):
        for i in prange(t):
            out[0] += x[i]
"""

UNKNOWN = """
def called(A, out, n):
    for i in prange(n):
        out[i] = not_there(A[i])

def passed(x, out, n, function):
    for i in prange(n):
        out[i] = function(x[i])

def same_value(out, x, n):
    for i in prange(n):
        out[i // 2] = x[i // 2]

def quadratic(out, x, n):
    for i in prange(n):
        out[i * i % 7] = x[i]

def left(x, n):
    for i in prange(n):
        if x[i] > 2:
            break

def returned(x, n):
    for i in prange(n):
        if x[i] > 2:
            return i
    return 0

def smoothed(x, n):
    v = 0.0
    for i in prange(n):
        v = 0.5 * v + x[i]
    return v

def appended(x, n):
    found = []
    for i in prange(n):
        found.append(x[i])
    return found

def stored_keys(x, n):
    found = {}
    for i in prange(n):
        found[i] = x[i]
    return found

def one_of_two(a, x, n, k):
    y = x if k > 1 else a
    for i in prange(1, n):
        y[i] = x[i - 1]

def compacted(x, out, n):
    j = 0
    for i in prange(n):
        if x[i] > 0.5:
            out[j] = x[i]
            j += 1
    return j

def by_thread(x, out, n):
    for i in prange(n):
        out[numba.get_thread_id()] += x[i]

def written_by_helper(A, n):
    for i in prange(n):
        not_there_either(A, i)

def output_by_position(A, tmp, n):
    for i in prange(n):
        np.add(A[i], 1.0, tmp)

def output_of_helper(A, tmp, n):
    for i in prange(n):
        doubled(A[i], tmp)

def output_in_helper(A, tmp, out, n):
    for i in prange(n):
        out[i] = writes_third(A[i], tmp)

def copy_in_place(a, n):
    for i in prange(n):
        np.nan_to_num(a, False)

def shifted_by_helper(a, n):
    b = tail(a)
    for i in prange(n):
        b[i] = a[i] + 1

def two_of_helper(a, n):
    b, c = two_views(a)
    for i in prange(n):
        b[i] = c[i] + 1

def row_of_loop(A, n):
    for row in A:
        for i in prange(n):
            row[i] = A[0, i + 1]

def turned(a, n):
    b = np.flip(a)
    for i in prange(n):
        b[i] = a[i] * 2

def of_tuple(x, n):
    t = (x, x[1:])
    for i in prange(n):
        t[0][i] = t[1][i]

def row_of_slice(A, n):
    rows = A[1:]
    row = rows[0]
    other = A[1]
    for i in prange(n):
        row[i] = other[i + 1]

def read_under_another_name(a, out, n):
    b = a[1:]
    for i in prange(n):
        b[i] = i
        out[i] = depth(a, 3)

def sums_in_tuple(x, y, n):
    s = t = 0.0
    for i in prange(n):
        s, t = s + x[i], t + y[i]
    return s, t

def clamped(out, n):
    for i in prange(n):
        out[0] = max(out[0], 3.0)

def adds_nothing(out, n):
    for i in prange(n):
        out[0] += 0

def itself(out, n):
    for i in prange(n):
        out[0] = out[0]
"""
