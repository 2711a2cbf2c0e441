"""Rows that are assigned together, and rows whose length has a name, are computed with as others are."""

from __future__ import annotations

import numpy as np
import pytest

import orion
from tests.loop_text import defined


def written(text):
    """A function of W, H and s with this body."""
    body = "".join(f"    {line}\n" for line in text.splitlines())
    return defined(f"def rows(W, H, s):\n{body}")


def kernel(text, **arguments):
    return orion.parallel_for(written(text)).kernel_source(**arguments).partition("def tile(")[2]


def given():
    rng = np.random.default_rng(0)
    return {"W": rng.random((6, 4)), "H": rng.random((6, 4)), "s": 0.5}


TOGETHER = {
    "copies": "for i in range(6):\n    a, b = W[i].copy(), H[i].copy()\n    W[i] += s * b\n    H[i] -= s * a",
    "values": "for i in range(6):\n    a, b = s * W[i], 2.0 * H[i]\n    W[i] = a + b\n    H[i] = a - b",
    "parts": "for i in range(6):\n    a, b = W[i], H[i]\n    a += s\n    b += a",
    "a row and a number": "for i in range(6):\n    a, t = W[i] * 2.0, s * i\n    H[i] = a + t",
    "both from the old": "for i in range(6):\n    W[i], H[i] = W[i] + s * H[i], H[i] - s * W[i]",
    "parts change places": "for i in range(5):\n    W[i], W[i + 1] = W[i + 1], W[i]",
    "copies change places": "for i in range(5):\n    W[i], W[i + 1] = W[i + 1].copy(), W[i].copy()",
    "names change places": (
        "for i in range(6):\n    a, b = W[i] + 1.0, H[i] + 2.0\n    a, b = b, a\n    W[i] = a\n    H[i] = b"
    ),
    "the first is read by the second": (
        "for i in range(6):\n    a = W[i] + 0.0\n    a, b = H[i] + 1.0, a * 2.0\n    W[i] = a + b"
    ),
    "a part of what had the name before": (
        "for i in range(6):\n    w = H[i]\n    w, h = W[i], w[1:]\n    w[0] = s\n    h[1] += w[1]"
    ),
    "three": "for i in range(6):\n    a, b, c = W[i] + 1.0, H[i] + 1.0, W[i] * H[i]\n    W[i] = a * b\n    H[i] = c",
}


@pytest.mark.parametrize("name", TOGETHER)
@pytest.mark.parametrize("workers", [1, 2])
def test_rows_that_are_assigned_together(name, workers):
    mine, theirs = given(), given()
    function = written(TOGETHER[name])
    with orion.session(workers=workers, force_parallel=True):
        orion.parallel_for(function)(**mine)
    function(**theirs)
    np.testing.assert_allclose(mine["W"], theirs["W"], rtol=1e-13)
    np.testing.assert_allclose(mine["H"], theirs["H"], rtol=1e-13)


def test_their_kernels_are_those_of_single_assignments():
    both = "for i in range(6):\n    a, b = W[i].copy(), H[i].copy()\n    W[i] += s * b\n    H[i] -= s * a"
    each = both.replace("a, b = W[i].copy(), H[i].copy()", "a = W[i].copy()\n    b = H[i].copy()")

    def code(text):
        return [line for line in kernel(text, **given()).splitlines() if "#" not in line]

    assert code(both) == code(each)


LENGTHS = {
    "an extent": ("R = H.shape[1]", "R"),
    "both extents": ("n, R = H.shape", "R"),
    "a length": ("R = len(H[0])", "R"),
    "a number": ("R = 4", "R"),
    "in a tuple": ("R = H.shape[1]", "(R,)"),
    "full": ("R = H.shape[1]", "R, 0.0"),
}


@pytest.mark.parametrize("name", LENGTHS)
def test_rows_with_a_name_for_their_length(name):
    first, length = LENGTHS[name]
    function = "np.full" if name == "full" else "np.zeros"
    text = (
        f"{first}\nfor i in range(6):\n    t = {function}({length})\n    for k in range(6):\n        t += s * W[k]\n"
        "    H[i] = t"
    )
    mine, theirs = given(), given()
    with orion.session(workers=2, force_parallel=True):
        orion.parallel_for(written(text))(**mine)
    written(text)(**theirs)
    np.testing.assert_allclose(mine["H"], theirs["H"], rtol=1e-13)
    assert name == "full" or "t[...]" not in kernel(text, **given())


def test_a_length_that_is_not_given_once_stays():
    text = (
        "R = W.shape[1]\nfor t in range(2):\n    R = R - 1\n    for i in range(6):\n"
        "        a = np.zeros(R)\n        a += s\n        H[i, :R] = a"
    )
    mine, theirs = given(), given()
    orion.parallel_for(written(text))(**mine)
    written(text)(**theirs)
    np.testing.assert_array_equal(mine["H"], theirs["H"])
