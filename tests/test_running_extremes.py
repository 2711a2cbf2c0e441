"""Running minima and maxima in scalars, of data with NaN and zeros of both signs: the bits of the loop as written."""

import importlib.util
import warnings

import numpy as np
import pytest

import orion

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

nan, inf = float("nan"), float("inf")

UPDATES = {
    "min_first": "m = min(m, x[i])",
    "min_second": "m = min(x[i], m)",
    "max_first": "m = max(m, x[i])",
    "max_second": "m = max(x[i], m)",
    "minimum_first": "m = np.minimum(m, x[i])",
    "minimum_second": "m = np.minimum(x[i], m)",
    "maximum_first": "m = np.maximum(m, x[i])",
    "maximum_second": "m = np.maximum(x[i], m)",
    "if_greater": "if x[i] > m: m = x[i]",
    "if_not_greater": "if not x[i] > m: m = x[i]",
    "if_less_or_equal": "if m >= x[i]: m = x[i]",
    "if_not_less_or_equal": "if not (x[i] <= m): m = x[i]",
    "choose_new": "m = x[i] if x[i] < m else m",
    "choose_old": "m = m if x[i] > m else x[i]",
    "of_an_expression": "m = max(m, abs(x[i] - y[i]))",
    "of_three": "m = min(m, x[i], y[i])",
    "of_three_last": "m = max(x[i], y[i], m)",
    "nested": "m = max(m, min(x[i], y[i]))",
    "with_a_constant": "m = max(m, 0)",
    "sometimes": "if y[i] > 0: m = max(x[i], m)",
    "of_a_name": "v = x[i] * 2.0; m = min(v, m)",
    "twice": "m = max(m, x[i]); m = max(m, y[i])",
    "with_a_place": "if not x[i] <= m: m = x[i]; at = i",
}
SERIAL = {
    "mixed": "m = max(m, x[i]); m = max(y[i], m)",
    "of_three_between": "m = max(x[i], m, y[i])",
    "read_as_well": "m = max(m, x[i]); at = at + (m > 1)",
}
COUNTS = (1, 2, 4)


def function(name, update, folder):
    separator = "\n            " if update.startswith("if") and ";" in update else "\n        "
    update = update.replace(": ", ":\n            ") if update.startswith("if") else update
    body = update.replace("; ", separator)
    path = folder / f"{name}.py"
    head = f"import numpy as np\n\ndef {name}(x, y, m, at):\n    for i in range(x.shape[0]):\n"
    path.write_text(f"{head}        {body}\n    return m, at\n")
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)


def columns(dtype):
    """Arrays with NaN at the beginning, the end, everywhere, nowhere; zeros of both signs; and of all lengths."""
    rng = np.random.default_rng(7)
    pool = np.array([nan, 1, -1, 0.0, -0.0, inf, -inf, 2], dtype)
    for length in (0, 1, 2, 3, 5, 40):
        for parts in (pool, pool[1:], pool[3:5]):
            yield rng.choice(parts, length), rng.choice(pool, length)
    for place in (0, 1, 13, 39):
        found = rng.choice(pool[1:], 40)
        found[place] = nan
        yield found, rng.choice(pool[1:], 40)
    yield np.full(9, nan, dtype), np.ones(9, dtype)


def bits(values):
    """Numbers with the signs of zeros."""
    return [repr(float(value)) for value in values]


def check(f, starts=(0.0, -0.0, nan, inf, -inf, 1.0, 0), dtypes=("float64", "float32")):
    compiled = orion.parallel_for(f)
    for workers in COUNTS:
        with orion.session(workers=workers, force_parallel=True):
            for dtype in dtypes:
                for x, y in columns(dtype):
                    for m in starts:
                        wanted = bits(f(x, y, m, 0))
                        assert bits(compiled(x, y, m, 0)) == wanted, (workers, x, y, m)


@pytest.mark.parametrize("name", UPDATES)
def test_the_bits_of_the_loop_as_written_in_parallel(name, tmp_path):
    f = function(name, UPDATES[name], tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error", orion.SerialLoopWarning)
        check(f)


@pytest.mark.parametrize("name", SERIAL)
def test_what_no_tiles_can_be_put_together_for_is_serial(name, tmp_path):
    f = function(name, SERIAL[name], tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", orion.SerialLoopWarning)
        check(f, starts=(0.0, nan, 1.0), dtypes=("float64",))
    assert orion.parallel_for(f).plan(np.ones(40), np.ones(40), 0.0, 0).strategy == "serial"


@pytest.mark.parametrize("name", [name for name in UPDATES if name != "with_a_constant"])
@pytest.mark.parametrize("dtype", ["int64", "int8", "uint8"])
def test_integers_are_combined_without_places(name, dtype, tmp_path):
    text = UPDATES[name].replace(" * 2.0", "").replace("abs(x[i] - y[i])", "x[i]")
    f = function(name, text, tmp_path)
    compiled = orion.parallel_for(f)
    rng = np.random.default_rng(3)
    for workers in COUNTS:
        with orion.session(workers=workers, force_parallel=True):
            for length in (0, 1, 5, 40):
                x, y = (rng.integers(0, 9, length).astype(dtype) for _ in range(2))
                for m in (3, 100):
                    start = np.dtype(dtype).type(m)
                    assert bits(compiled(x, y, start, 0)) == bits(f(x, y, start, 0))
    if name != "with_a_place":
        assert "place" not in compiled.kernel_source(np.ones(9, dtype), np.ones(9, dtype), np.dtype(dtype).type(3), 0)


# ---------------------------------------------------------------- nests, sparse arrays, rounds


def of_a_matrix(A):
    m = 1.0
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            m = max(m, A[i, j])
    return m


def of_a_matrix_anew(A):
    m = 1.0
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            m = max(A[i, j], m)
    return m


def of_a_matrix_by_numpy(A):
    m = 1.0
    for i in range(A.shape[0] - 1, -1, -1):
        for j in range(0, A.shape[1], 2):
            m = np.minimum(m, A[i, j])
    return m


def across(A):
    """Rows depend on each other: columns are shared out, so that tiles lie side by side in the written order."""
    m = 1.0
    for i in range(1, A.shape[0]):
        for j in range(A.shape[1]):
            A[i, j] = A[i, j] - A[i - 1, j] * 0
            m = max(m, A[i, j])
    return m


def in_rounds(A):
    found = 0.0
    for _ in range(3):
        m = -0.0
        for i in range(1, A.shape[0] - 1):
            for j in range(A.shape[1]):
                m = min(A[i, j], m)
        found += m if m == m else 1.0
    return found


def of_each_row(A):
    total = 0.0
    for i in range(A.shape[0]):
        m = inf
        for j in range(A.shape[1]):
            m = min(A[i, j], m)
        A[i, 0] = m
        total += 1.0
    return total


NESTS = [of_a_matrix, of_a_matrix_anew, of_a_matrix_by_numpy, across, in_rounds, of_each_row]


@pytest.mark.parametrize("workers", COUNTS)
@pytest.mark.parametrize("f", NESTS, ids=lambda f: f.__name__)
def test_nests(f, workers):
    rng = np.random.default_rng(2)
    pool = np.array([nan, 0.0, -0.0, 1.0, 3.0, -inf])
    compiled = orion.parallel_for(f)
    with orion.session(workers=workers, force_parallel=True), warnings.catch_warnings():
        warnings.simplefilter("error", orion.SerialLoopWarning)
        for parts in (pool, pool[1:], pool[1:3]):
            for _ in range(4):
                A = rng.choice(parts, (7, 9))
                expected = A.copy()
                wanted = f(expected)
                assert bits([compiled(A)]) == bits([wanted])
                assert bits(A.flat) == bits(expected.flat)


@pytest.mark.parametrize("workers", COUNTS)
@pytest.mark.parametrize("ordered", [None, True])
def test_elements_of_a_sparse_array(workers, ordered):
    def least(ratings):
        m = 1.0
        for (_i, _j), r in ratings:
            m = min(m, r)
        return m

    def least_anew(ratings):
        m = 1.0
        for (_i, _j), r in ratings:
            m = min(r, m)
        return m

    rng = np.random.default_rng(4)
    for f in (least, least_anew):
        compiled = orion.parallel_for(f, ordered=ordered)
        for parts in ([0.0, 1.0, -1.0, nan], [2.0, 0.5]):
            places = rng.integers(9, size=50), rng.integers(7, size=50)
            ratings = orion.sparse(places, rng.choice(parts, 50), allow_nan=True)
            with orion.session(workers=workers, force_parallel=True), warnings.catch_warnings():
                warnings.simplefilter("ignore", orion.SerialLoopWarning)
                found = compiled(ratings)
                if ordered:
                    assert bits([found]) == bits([f(ratings)])
                else:
                    order = compiled.plan(ratings).serial_order()
                    values = ratings.values[0][order] if isinstance(ratings.values, tuple) else ratings.values[order]
                    m = 1.0
                    for r in values:
                        m = min(m, r) if f is least else min(r, m)
                    assert bits([found]) == bits([m])


# ---------------------------------------------------------------- elements of arrays


def into_elements(best, k, x):
    for i in range(x.shape[0]):
        best[k[i]] = min(best[k[i]], x[i])


def into_elements_anew(best, k, x):
    for i in range(x.shape[0]):
        best[k[i]] = min(x[i], best[k[i]])


def into_elements_by_numpy(best, k, x):
    for i in range(x.shape[0]):
        best[k[i]] = np.maximum(best[k[i]], x[i])


@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
@pytest.mark.parametrize("workers", COUNTS)
@pytest.mark.parametrize("f", [into_elements, into_elements_anew, into_elements_by_numpy], ids=lambda f: f.__name__)
def test_elements_with_nan(f, workers):
    rng = np.random.default_rng(9)
    compiled = orion.parallel_for(f)
    with orion.session(workers=workers, force_parallel=True):
        for _ in range(20):
            x, k = rng.choice([nan, 1.0, -2.0, inf, 5.0], 60), rng.integers(4, size=60)
            found = np.array([nan, 1.0, 7.0, -inf])
            wanted = found.copy()
            compiled(found, k, x)
            f(wanted, k, x)
            np.testing.assert_array_equal(found, wanted)
