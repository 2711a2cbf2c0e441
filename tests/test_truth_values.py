"""Truth values as operands of arithmetic, as subscripts and as bounds: what Python and NumPy do, or an error."""

import importlib.util

import numpy as np
import pytest

import orion

pytestmark = [
    pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
]

OPERATORS = ["+", "-", "*", "/", "//", "%", "&", "|", "^", "<<", ">>", "<", "<=", "=="]
NUMBERS = [np.uint64(2**63 + 5), np.uint64(0), np.uint8(200), np.int8(-3), 7]


def made(name, text, folder):
    path = folder / f"{name}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.f


@pytest.mark.parametrize("form", ["a {op} b", "x[i] {op} y[i]"])
@pytest.mark.parametrize("number", NUMBERS, ids=lambda n: f"{type(n).__name__}-{n:.2g}")
@pytest.mark.parametrize("truth", [True, np.True_])
def test_arithmetic(number, truth, form, tmp_path):
    for a, b in ((number, truth), (truth, number)):
        operators = [op for op in OPERATORS if b or op not in ("/", "//", "%")]
        lines = [f"        z[i, {k}] = {form.format(op=op)}\n" for k, op in enumerate(operators)]
        f = made("f", "def f(a, b, x, y, z):\n    for i in range(z.shape[0]):\n" + "".join(lines), tmp_path)
        given = a, b, np.full(3, a), np.full(3, b)
        found, wanted = np.zeros((3, len(operators))), np.zeros((3, len(operators)))
        orion.parallel_for(f)(*given, found)
        f(*given, wanted)
        np.testing.assert_array_equal(found, wanted, err_msg=f"{a!r} and {b!r} by {operators}")


# ---------------------------------------------------------------- as subscripts


SUBSCRIPTS = {
    "alone": "z[i] = A[m]",
    "chosen": "z[i] = A[m if i > 1 else n]",
    "chosen_last": "z[i] = A[n if i > 1 else m]",
    "least": "z[i] = A[min(m, n)]",
    "either": "z[i] = A[m or n]",
    "compared": "z[i] = A[i if i > 1 else n > 1]",
    "named": "k = m\n        if i > 1:\n            k = n\n        z[i] = A[k]",
    "named_twice": "k = n\n        if i > 1:\n            k = m\n        j = k\n        z[i] = A[j]",
    "one_of_two": "k, j = m, n\n        if i > 1:\n            k, j = j, i\n        z[i] = A[k]",
    "written": "A[m if i > 1 else n] = 1.0",
}


@pytest.mark.parametrize("truth", [True, False, np.True_, np.False_], ids=lambda t: f"{type(t).__name__}-{t}")
@pytest.mark.parametrize("name", SUBSCRIPTS)
def test_subscripts_that_may_be_masks_are_refused(name, truth, tmp_path):
    f = made("f", f"def f(A, m, n, z):\n    for i in range(z.shape[0]):\n        {SUBSCRIPTS[name]}\n", tmp_path)
    with pytest.raises(orion.UnsupportedLoopError, match=r"a subscript (is|may be) a truth value(.|\n)*mask(.|\n)*int"):
        orion.parallel_for(f)(np.arange(4.0), truth, 2, np.zeros(4))
    compiled, found, wanted = orion.parallel_for(f), np.zeros(4), np.zeros(4)
    if name != "compared":
        compiled(np.arange(4.0), int(truth), 2, found)
        f(np.arange(4.0), int(truth), 2, wanted)
    np.testing.assert_array_equal(found, wanted)


def converted(A, m, n, z):
    for i in range(z.shape[0]):
        z[i] = A[int(m) if i > 1 else n] + A[int(A[i] > 1)]


def test_what_the_hint_says_works():
    found, wanted = np.zeros(4), np.zeros(4)
    orion.parallel_for(converted)(np.arange(4.0), np.True_, 2, found)
    converted(np.arange(4.0), np.True_, 2, wanted)
    np.testing.assert_array_equal(found, wanted)


# ---------------------------------------------------------------- as bounds


BOUNDS = {
    "stop": "for i in range(m):\n        z[i] += 1",
    "start": "for i in range(m, 4):\n        z[i] += 1",
    "step": "for i in range(0, 4, m):\n        z[i] += 1",
    "inside": "for k in range(3):\n        for i in range(m, 3):\n            z[i] += 1",
    "rounds": "for _ in range(m):\n        for i in range(4):\n            z[i] += 1\n"
    "        for i in range(4):\n            z[i] *= 2",
    "chosen": "for i in range(m if n > 1 else n):\n        z[i] += 1",
    "sliced": "for i in range(2):\n        z[m:] += i + 1",
}


@pytest.mark.parametrize("name", BOUNDS)
def test_bounds(name, tmp_path):
    f = made("f", f"def f(m, n, z):\n    {BOUNDS[name]}\n", tmp_path)
    for truth in (True, False):
        found, wanted = np.zeros(4), np.zeros(4)
        if name == "step" and not truth:
            with pytest.raises(ValueError, match="arg 3 must not be zero"):
                orion.parallel_for(f)(truth, 2, found)
            continue
        orion.parallel_for(f)(truth, 2, found)
        f(truth, 2, wanted)
        np.testing.assert_array_equal(found, wanted)
    for truth in (np.True_, np.False_):
        with pytest.raises(TypeError):
            f(truth, 2, np.zeros(4))
        with pytest.raises(orion.UnsupportedLoopError, match=r"is a truth value of NumPy's(.|\n)*int"):
            orion.parallel_for(f)(truth, 2, np.zeros(4))


def test_comparisons_of_elements_are_truth_values_of_numpys():
    def compared(x, z):
        for i in range(3):
            for k in range(x[i] > 1):
                z[i] += k + 1

    def of_python(n, z):
        for i in range(n > 1):
            z[i] += 1

    with pytest.raises(orion.UnsupportedLoopError, match="a bound of a range is a truth value of NumPy's"):
        orion.parallel_for(compared)(np.arange(3.0), np.zeros(3))
    found = np.zeros(3)
    orion.parallel_for(of_python)(2, found)
    assert found.tolist() == [1, 0, 0]
