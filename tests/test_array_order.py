"""One order of a sparse array: ascending keys, equal ones as given; in Python, with `ordered=True`, and as told."""

import warnings

import numpy as np
import pytest

import orion

rng = np.random.default_rng(11)
COUNT = 400
KEYS = rng.integers(0, 12, (3, COUNT))  # unsorted, and about three elements to each pair of keys
VALUES, WEIGHTS = rng.integers(0, 1000, COUNT), rng.integers(1, 9, COUNT)


def matrix(keys=KEYS[:2]):
    return orion.sparse(tuple(keys), VALUES)


def from_scipy():
    sp = pytest.importorskip("scipy.sparse")
    return orion.from_scipy(sp.coo_array((VALUES, tuple(KEYS[:2])), shape=(12, 12)))


def from_pandas():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"i": KEYS[0], "j": KEYS[1], "v": VALUES})
    return orion.from_pandas(frame, keys=["i", "j"], values="v")


def from_arrow():
    pyarrow = pytest.importorskip("pyarrow")
    return orion.from_arrow(pyarrow.table({"i": KEYS[0], "j": KEYS[1], "v": VALUES}), keys=["i", "j"], values="v")


def from_file(tmp_path):
    path = tmp_path / "r.csv"
    path.write_text("".join(f"{i},{j},{v}\n" for i, j, v in zip(*KEYS[:2], VALUES, strict=True)))
    return orion.read_csv(path, dtype="int64")


def rows_and_columns(ratings, a, b):
    for (i, j), r in ratings:
        a[i] = (a[i] * 31 + b[j] + r) % 10007
        b[j] = (b[j] * 37 + a[i] * 3 + r) % 10007


def all_in_turn(ratings, a, b):
    for (i, j), r in ratings:
        a[0] = (a[0] * 31 + r * 7 + i * 3 + j) % 10007
        b[0] = a[0]


def pairs_of_values(ratings, a, b):
    for (i, j), (r, w) in ratings:
        a[i] = (a[i] * 31 + b[j] + r * w) % 10007
        b[j] = (b[j] * 37 + a[i] * 3 + w) % 10007


def three_keys(ratings, a, b):
    for (i, j, k), r in ratings:
        a[i] = (a[i] * 31 + b[j] + r + k) % 10007
        b[j] = (b[j] * 37 + a[i] * 3 + r) % 10007


SOURCES = {
    "sparse": (matrix, rows_and_columns),
    "sparse, in turn": (matrix, all_in_turn),
    "long keys": (lambda: orion.sparse((KEYS[0], KEYS[1] + 2**33 - 12), VALUES, (12, 2**33)), all_in_turn),
    "in ascending order": (lambda: matrix(np.sort(KEYS[:1]).repeat(2, axis=0)), rows_and_columns),
    "two values": (lambda: orion.sparse(tuple(KEYS[:2]), (VALUES, WEIGHTS)), pairs_of_values),
    "three keys": (lambda: orion.sparse(tuple(KEYS), VALUES), three_keys),
    "no elements": (lambda: orion.sparse(([], []), np.zeros(0, int), (12, 12)), rows_and_columns),
    "scipy": (from_scipy, rows_and_columns),
    "pandas": (from_pandas, rows_and_columns),
    "arrow": (from_arrow, rows_and_columns),
    "file": (from_file, rows_and_columns),
}


def as_given(array):
    """The elements as they were given, as a list that Python can go through in any order."""
    values = array.values if array.values_are_tuple else (array.values,)
    entries = list(zip(*(v.tolist() for v in values), strict=True))
    keys = zip(*(k.tolist() for k in array.coords), strict=True)
    return [(key, entry if array.values_are_tuple else entry[0]) for key, entry in zip(keys, entries, strict=True)]


def after(call, elements):
    a, b = np.arange(12), np.arange(12)[::-1].copy()
    call(elements, a, b)
    return a.tolist(), b.tolist()


@pytest.fixture(params=SOURCES, ids=str)
def case(request, tmp_path):
    make, body = SOURCES[request.param]
    return (make(tmp_path) if make is from_file else make()), body


@pytest.mark.parametrize("workers", [1, 2])
def test_python_and_ordered_loops_and_serial_orders_agree(case, workers):
    array, body = case
    given = as_given(array)
    by_keys = after(body, sorted(given, key=lambda element: element[0]))
    assert array.nnz == 0 or by_keys != after(body, given) or given == sorted(given, key=lambda e: e[0])
    for ordered in (True, None):
        compiled = orion.parallel_for(ordered=ordered)(body)
        with orion.session(workers=workers, force_parallel=True), warnings.catch_warnings():
            warnings.simplefilter("ignore", orion.SerialLoopWarning)
            found = after(compiled, array)
            order = compiled.plan(array, np.arange(12), np.arange(12)).serial_order(workers)
        assert found == after(body, [given[p] for p in order])
        assert after(compiled.serial, array) == by_keys
        if ordered:
            assert found == by_keys
            assert order.tolist() == array.iteration_order.tolist()


def test_iteration_is_by_keys_and_what_is_shown_as_given(case):
    array, _ = case
    given = as_given(array)
    found = [(key, tuple(map(int, value)) if array.values_are_tuple else int(value)) for key, value in array]
    assert found == sorted(given, key=lambda element: element[0])
    if array.ndim == 2:
        array.layout(tuple([0, n // 2, n] for n in array.shape), "shuffled")
        assert [key for key, _ in array] == [key for key, _ in found]
        assert as_given(array) == given


def test_coordinates_and_values_stay_as_given():
    array = matrix()
    assert [key for key, _ in array] != list(zip(*KEYS[:2].tolist(), strict=True))
    np.testing.assert_array_equal(array.coords, KEYS[:2])
    np.testing.assert_array_equal(array.values, VALUES)
    pytest.importorskip("scipy.sparse")
    np.testing.assert_array_equal(array.to_scipy().coords, KEYS[:2])
    np.testing.assert_array_equal(array.to_scipy().data, VALUES)


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_the_order_of_iteration_is_that_of_a_stable_sort(dims):
    keys = KEYS[:dims] * 2**29
    array = orion.sparse(tuple(keys), VALUES, (2**40,) * dims)
    plain = array.nbytes
    assert array.iteration_order.tolist() == np.lexsort(keys[::-1]).tolist()
    assert array.nbytes == plain + 4 * COUNT
    ascending = orion.sparse(tuple(keys[:, array.iteration_order]), VALUES, (2**40,) * dims)
    plain = ascending.nbytes
    assert ascending.iteration_order.tolist() == list(range(COUNT))
    assert ascending.nbytes == plain
