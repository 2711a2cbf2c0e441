"""Loops of TSVC that carry scalars, or may be put in another order: as parallel as they are by their nature, and right.

After the suite of Callahan, Dongarra and Levine ("Vectorizing compilers: a test suite and results", 1988), as Maleki et
al. have it ("An evaluation of vectorizing compilers", PACT 2011), written as Python has it.
"""

from __future__ import annotations

import inspect
import warnings

import numpy as np
import pytest

import orion
from tests.oracles.interpreted import Order, kernel_code, run_interpreted
from tests.oracles.nest_check import is_in_vectors
from tests.trials import worker_counts


def s122(a, b, n1, n3):
    j = 1
    k = 0
    for i in range(n1 - 1, a.shape[0], n3):
        k += j
        a[i] += b[a.shape[0] - k]


def s123(a, b, c, d, e):
    j = -1
    for i in range(a.shape[0] // 2):
        j += 1
        a[j] = b[i] + d[i] * e[i]
        if c[i] > 0.0:
            j += 1
            a[j] = c[i] + d[i] * e[i]


def s124(a, b, c, d, e):
    j = -1
    for i in range(a.shape[0]):
        if b[i] > 0.0:
            j += 1
            a[j] = b[i] + d[i] * e[i]
        else:
            j += 1
            a[j] = c[i] + d[i] * e[i]


def s125(flat, aa, bb, cc):
    k = -1
    for i in range(aa.shape[0]):
        for j in range(aa.shape[1]):
            k += 1
            flat[k] = aa[i, j] + bb[i, j] * cc[i, j]


def s126(flat, bb, cc):
    k = 1
    for i in range(bb.shape[1]):
        for j in range(1, bb.shape[0]):
            bb[j, i] = bb[j - 1, i] + flat[k - 1] * cc[j, i]
            k += 1
        k += 1


def s127(a, b, c, d, e):
    j = -1
    for i in range(a.shape[0] // 2):
        j += 1
        a[j] = b[i] + c[i] * d[i]
        j += 1
        a[j] = b[i] + d[i] * e[i]


def s128(a, b, c, d):
    j = -1
    for i in range(a.shape[0] // 2):
        k = j + 1
        a[i] = b[k] - d[i]
        j = k + 1
        b[k] = a[i] + c[k]


def s151s(a, b, m):
    for i in range(a.shape[0] - 1):
        a[i] = a[i + m] + b[i]


def s151(a, b):
    s151s(a, b, 1)


def s162(a, b, c, k):
    if k > 0:
        for i in range(a.shape[0] - k):
            a[i] = a[i + k] + b[i] * c[i]


def s172(a, b, n1, n3):
    for i in range(n1 - 1, a.shape[0], n3):
        a[i] += b[i]


def s175(a, b, inc):
    for i in range(0, a.shape[0] - inc, inc):
        a[i] = a[i + inc] + b[i]


def s244(a, b, c, d):
    for i in range(a.shape[0] - 1):
        a[i] = b[i] + c[i] * d[i]
        b[i] = c[i] + b[i]
        a[i + 1] = b[i] + a[i + 1] * d[i]


def s252(a, b, c):
    t = 0.0
    for i in range(a.shape[0]):
        s = b[i] * c[i]
        a[i] = s + t
        t = s


def s253(a, b, c, d):
    for i in range(a.shape[0]):
        if a[i] > b[i]:
            s = a[i] - b[i] * d[i]
            c[i] += s
            a[i] = s


def s254(a, b):
    x = b[b.shape[0] - 1]
    for i in range(a.shape[0]):
        a[i] = (b[i] + x) * 0.5
        x = b[i]


def s255(a, b):
    x = b[b.shape[0] - 1]
    y = b[b.shape[0] - 2]
    for i in range(a.shape[0]):
        a[i] = (b[i] + x + y) * 0.333
        y = x
        x = b[i]


def s256(a, bb, cc, d):
    for i in range(bb.shape[1]):
        for j in range(1, bb.shape[0]):
            a[j] = 1.0 - a[j - 1]
            cc[j, i] = a[j] + bb[j, i] * d[j]


def s257(a, aa, bb):
    for i in range(1, aa.shape[1]):
        for j in range(aa.shape[0]):
            a[i] = aa[j, i] - a[i - 1]
            aa[j, i] = a[i] + bb[j, i]


def s258(a, b, c, d, e, aa):
    s = 0.0
    for i in range(a.shape[0]):
        if a[i] > 0.0:
            s = d[i] * d[i]
        b[i] = s * c[i] + d[i]
        e[i] = (s + 1.0) * aa[0, i]


def s261(a, b, c, d):
    for i in range(1, a.shape[0]):
        t = a[i] + b[i]
        a[i] = t + c[i - 1]
        t = c[i] * d[i]
        c[i] = t


def s291(a, b):
    im1 = b.shape[0] - 1
    for i in range(a.shape[0]):
        a[i] = (b[i] + b[im1]) * 0.5
        im1 = i


def s292(a, b):
    im1 = b.shape[0] - 1
    im2 = b.shape[0] - 2
    for i in range(a.shape[0]):
        a[i] = (b[i] + b[im1] + b[im2]) * 0.333
        im2 = im1
        im1 = i


def s318(a, inc):
    k = 0
    index = 0
    top = abs(a[0])
    k += inc
    for i in range(1, a.shape[0] // inc):
        if abs(a[k]) > top:
            index = i
            top = abs(a[k])
        k += inc
    return top + index


def s352(a, b):
    dot = 0.0
    for i in range(0, a.shape[0] - 4, 5):
        dot = dot + a[i] * b[i] + a[i + 1] * b[i + 1] + a[i + 2] * b[i + 2] + a[i + 3] * b[i + 3] + a[i + 4] * b[i + 4]
    return dot


def s453(a, b):
    s = 0.0
    for i in range(a.shape[0]):
        s += 2.0
        a[i] = s * b[i]


def s4114(a, b, c, d, ip, n1):
    for i in range(n1 - 1, a.shape[0]):
        k = ip[i]
        a[i] = b[i] + c[a.shape[0] - k + 1 - 2] * d[i]
        k += 5


PARALLEL = [
    s124, s125, s126, s127, s128, s151, s172, s175, s252, s253, s254, s255, s256, s261, s291, s292, s318, s352,
    s453, s4114,
]  # fmt: skip

SERIAL = {
    s122: "the number of the trip would take a division, as the step is an argument",
    s123: "how many elements are kept before an iteration is known after them (a scan)",
    s162: "which way the dependence goes is known at the call only, and the copy is made where it is known before",
    s244: "each iteration overwrites what the one before stored, and reads it first",
    s257: "an element is used as a scalar",
    s258: "the value that was last set is found by a scan",
}
"""Loops that one worker runs, and why."""


def arguments(function, n, m):
    made = np.random.default_rng(1)
    sizes = {"n1": 1, "n3": 2, "k": 2, "inc": 2}
    found = []
    for name in inspect.signature(function).parameters:
        if name in sizes:
            found.append(sizes[name])
        elif name == "ip":
            found.append(made.integers(0, n - 2, n))
        elif name in ("aa", "bb", "cc"):
            found.append(made.random((m, n if function is s258 else m)))
        elif name == "flat":
            found.append(made.random(m * m + m))
        else:
            found.append(made.random(m if function in (s256, s257) else n) - 0.3)
    return found


@pytest.mark.parametrize("function", [*PARALLEL, *SERIAL], ids=lambda f: f.__name__)
def test_is_as_parallel_as_it_is_by_nature(function):
    with orion.session(workers=2, force_parallel=True), warnings.catch_warnings():
        warnings.simplefilter("ignore", orion.SerialLoopWarning)
        plan = orion.parallel_for(function).plan(*arguments(function, 1000, 30))
    assert plan.is_parallel == (function in PARALLEL), str(plan)


@pytest.mark.parametrize("function", [*PARALLEL, *SERIAL], ids=lambda f: f.__name__)
def test_is_right(function):
    """Compiled on two threads; and kernels that the interpreter runs, at other sizes, on one, two and four workers."""
    warnings.simplefilter("ignore", orion.SerialLoopWarning)
    looped = orion.parallel_for(function)
    with orion.session(workers=2, force_parallel=True):
        compare(function, lambda given: looped(*given), 203, 9)
    for workers in worker_counts(1, 2, 4):
        for n, m in ((6, 3), (40, 7), (41, 5)):
            with orion.session(workers=workers, force_parallel=True):
                compare(function, lambda given, workers=workers: interpreted(looped, given, workers), n, m)


@pytest.mark.ray
@pytest.mark.timeout(300)
def test_is_right_on_ray():
    with orion.session(backend="ray", workers=2, force_parallel=True):
        for function in (s125, s128, s255, s261, s318):
            compare(function, lambda given, function=function: orion.parallel_for(function)(*given), 203, 9)


def interpreted(looped, given, workers):
    named = dict(zip(inspect.signature(looped).parameters, given, strict=True))
    prepared = looped._preparations.plain.prepare(named, workers, True)
    prepared.plan.check()
    if is_in_vectors(prepared):
        return looped(*given)
    codes = [kernel_code(loop.kernel.text) for loop in prepared.program.loops]
    own = prepared.local.take()
    return run_interpreted(prepared.program, codes, {**prepared.given(named), **own}, Order(workers))


def compare(function, run, n, m):
    mine, its = arguments(function, n, m), arguments(function, n, m)
    got, want = run(mine), function(*its)
    assert got == want or got == pytest.approx(want, rel=1e-12)
    for one, other in zip(mine, its, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-14, atol=0)
