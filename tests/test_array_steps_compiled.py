"""Steps that are compiled give what Python gives, to the bit and of the same dtype, or are not compiled."""

import math
import warnings
from collections import OrderedDict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import orion
from orion.arrays import lazy
from orion.kernel.build import elementwise
from tests.trials import times

SCALE, COUNT, SINGLE = 0.1, 3, np.float32(0.1)
PLACES = np.array([4, 0, 2, 1, 3], np.int32)
TABLE = np.array([[5, 3, 1], [0, 2, 4]])
WEIGHTS = np.array([0.1, 0.2, 0.3, 0.4, 0.5], np.float32)


def helper(v):
    return v * 2.0 + 1.0


def spread(key):
    i, j = key
    return i < j or i == j


def with_loop(v):
    total = 0.0
    for k in range(3):
        total += v * (k + 1)
    return total


@pytest.fixture(autouse=True)
def compiled_from_the_first_element(monkeypatch):
    monkeypatch.setattr(lazy, "COMPILED_FROM", 1)
    monkeypatch.setattr(elementwise, "CHUNK", 7)


@pytest.fixture
def runs(monkeypatch):
    """What compiled loops have been used for."""
    found, own = [], elementwise.run_compiled

    def run(steps, *rest):
        made = own(steps, *rest)
        found.append([step.method for step in steps])
        return made

    monkeypatch.setattr(elementwise, "run_compiled", run)
    return found


ANY = ("int64", "float64", "float32")
MAPS = {
    "times a float": (ANY, lambda v: v * 2.5),
    "times an integer": (ANY, lambda v: v * 3),
    "from a constant": (ANY, lambda v: 1 - v),
    "a global": (ANY, lambda v: v * SCALE + COUNT),
    "division": (ANY, lambda v: v / 4),
    "inverse": (ANY, lambda v: 1 / v if v else v / 3),
    "by itself": (ANY, lambda v: (v + v) / (v - 3) if v != 3 else v / 1),
    "negative": (ANY, lambda v: -v),
    "absolute": (ANY, lambda v: abs(v)),  # noqa: PLW0108
    "truncated": (ANY, lambda v: int(v)),  # noqa: PLW0108
    "widened": (ANY, lambda v: float(v)),  # noqa: PLW0108
    "above": (ANY, lambda v: v > 0.1),
    "equal": (ANY, lambda v: v == 0.1),
    "between": (ANY, lambda v: 0 <= v < 2),
    "both": (ANY, lambda v: (v > 0) & (v < 2)),
    "not": (ANY, lambda v: not v),
    "tuple": (ANY, lambda v: (v, v > 1, int(v))),
    "one of a tuple": (ANY, lambda v: (v,)),
    "itself": (("int8", "uint32", "bool", "complex64", *ANY), lambda v: v),
    "narrow compared": (("int8", "uint32", "int16"), lambda v: v >= 2),
    "helper": (("float64",), lambda v: helper(v)),  # noqa: PLW0108
    "chosen": (("float64",), lambda v: v if v > 0 else 0.0),
    "larger": (("float64",), lambda v: max(v, 0.0)),
    "smaller": (("int64",), lambda v: min(v, 2)),
    "square of an integer": (("int64",), lambda v: v**2),
    "quotient": (("int64",), lambda v: v // 3),
    "remainder": (("int64",), lambda v: v % 3),
    "bits": (("int64",), lambda v: (v & 6) ^ 1 | (v >> 1)),
    "root": (("float64", "float32"), lambda v: np.sqrt(abs(v))),
    "rounded down": (("float64", "float32"), lambda v: np.floor(v)),  # noqa: PLW0108
    "Python's root": (("float64", "float32"), lambda v: math.sqrt(abs(v))),
    "single": (("float64",), lambda v: np.float32(v)),  # noqa: PLW0108
    "loop": (("float64",), with_loop),
    "looked up": (("int64",), lambda v: PLACES[v % 5]),
}
NUMBERS = [0, 1, -1, 2, 3, 5, 100, 7, 2.5, 0.1, -0.5, 1e30, 1 / 3]
CASES = [(name, kind) for name, (kinds, _) in MAPS.items() for kind in kinds]


def by_python(array, monkeypatch):
    monkeypatch.setattr(lazy, "COMPILED_FROM", 1 << 60)
    with np.errstate(all="ignore"):
        return array.materialize()


def assert_same(found, wanted):
    assert (found.shape, found.key_dtype) == (wanted.shape, wanted.key_dtype)
    assert found.values_are_tuple == wanted.values_are_tuple
    np.testing.assert_array_equal(found.coords, wanted.coords)
    many = found.values_are_tuple
    for one, other in zip(*((a.values if many else [a.values]) for a in (found, wanted)), strict=True):
        assert one.dtype == other.dtype
        assert one.tobytes() == other.tobytes()


def numbers(kind):
    kept = [
        n for n in NUMBERS if np.dtype(kind).kind == "f" or (n == int(n) and (kind[0] != "u" or n >= 0) and n < 1e9)
    ]
    return np.array(kept).astype(kind)


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_maps_that_are_compiled(name, kind, runs, monkeypatch):
    values = numbers(kind)
    if name == "truncated" or name == "tuple":
        values = values[abs(values) < 1e9]
    a = orion.sparse((np.arange(len(values)),), values)
    found = a.map(MAPS[name][1]).materialize()
    assert runs == [["map"]]
    assert_same(found, by_python(a.map(MAPS[name][1]), monkeypatch))


def matrix():
    rng = np.random.default_rng(1)
    return orion.sparse((rng.integers(0, 9, 50), rng.integers(0, 20, 50)), rng.random(50), shape=(9, 20))


CHAINS = {
    "turned": lambda a: a.map_keys(lambda i, j: (j, i)),
    "one key": lambda a: a.map_keys(lambda i, j: i * 3 + j),
    "three keys": lambda a: a.map_keys(lambda i, j: (i, j, i // 2)).map_keys(lambda i, j, k: (k, i)),
    "looked up": lambda a: a.map_keys(lambda i, j: (PLACES[i % 5], j)),
    "a shape": lambda a: a.map_keys(lambda i, j: (j, i), shape=(50, 50)).shuffle_keys([0, 1], 3),
    "filtered": lambda a: a.filter(lambda key, v: key[0] != key[1] and v > 0.5),
    "any key": lambda a: a.filter(lambda key, v: key[key[0] % 3 - 2] > 3),
    "unpacked": lambda a: a.filter(lambda key, v: spread(key) and key[-1] < 15),
    "of an array": lambda a: a.map_keys(lambda i, j: (min(i, TABLE.shape[0] - 1), TABLE[i % 2, j % 3])),
    "filtered keys": lambda a: a.map_keys(lambda i, j: (j, i)).filter(lambda key, v: key[0] < 3),
    "shuffled": lambda a: a.shuffle_keys(0, 3).map(lambda v: v + 1.0).shuffle_keys([1], 4),
    "values": lambda a: a.map(lambda v: (v, v > 0.5)).filter(lambda key, v: v[1]).map(lambda v, w: v * 2.0),
    "closure": lambda a, limit=0.25: a.filter(lambda key, v: v > limit),
    "far": lambda a: a.map_keys(lambda i, j: (i * 2**40, j), shape=(2**50, 30)),
    "near": lambda a: a.map_keys(lambda i, j: (i * 2**40, j)).map_keys(lambda i, j: (i // 2**40, j)),
}


@pytest.mark.parametrize("make", CHAINS.values(), ids=CHAINS.keys())
def test_chains_that_are_compiled(make, runs, monkeypatch):
    found = make(matrix()).materialize()
    assert len(runs) == 1
    assert_same(found, by_python(make(matrix()), monkeypatch))


NOT_COMPILED = {
    "several types": lambda v: v if v > 0.3 else 0,
    "logarithm": lambda v: np.log(v),  # noqa: PLW0108
    "power": lambda v: v**2.0,
    "single and double": lambda v: v * np.float32(2) * SINGLE,
    "remainder of floats": lambda v: v % 0.3,
    "name of several types": lambda v: (v := 1) if v > 0.5 else 2.0,
    "random": lambda v: np.random.default_rng(int(v * 100)).random(),
    "list": lambda v: len([v]),
    "text": lambda v: len(str(v)),
    "narrow element": lambda v: WEIGHTS[int(v * 4)] * v,
    "raises for some": lambda v: 1.0 / (v - v) if v < 0 else np.float64(1) / (v - v),
    "larger than 64 bits": lambda v: (int(v * 100) + 2) * 2**61 // 2**61,
    "from an array": lambda v: [1, 2, 3][int(v * 3)],
    "default given": lambda v: (lambda x, y=2.0: y)(v, y=v),  # noqa: PLC3002
}


def without_a_value(v):
    if v > 2:
        found = v
    return found


@pytest.mark.parametrize("f", NOT_COMPILED.values(), ids=NOT_COMPILED.keys())
def test_what_python_does(f, runs, monkeypatch):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        found = matrix().map(f).materialize()
        assert runs == []
        assert_same(found, by_python(matrix().map(f), monkeypatch))


def test_errors_are_those_of_python():
    for f, kind in (
        (lambda v: 1 // int(v), ZeroDivisionError),
        (lambda v: PLACES[int(v * 50)], IndexError),
        (without_a_value, UnboundLocalError),
    ):
        with pytest.raises(kind) as caught:
            matrix().map(f).materialize()
        text = str(caught.value) + "".join(getattr(caught.value, "__notes__", []))
        assert "for the element with the key" in text
    with pytest.raises(orion.DataFormatError, match="-1 is a negative key"):
        matrix().map_keys(lambda i, j: (i - 1, j)).materialize()
    with pytest.raises(orion.DataFormatError, match=r"lies outside of the shape \(9, 3\)"):
        matrix().map_keys(lambda i, j: (i, j), shape=(9, 3)).materialize()
    with pytest.raises(orion.DataFormatError, match=r"would have .* indices for 50 elements"):
        matrix().map_keys(lambda i, j: (i, j * 2**40)).filter(lambda key, v: key[1] == 0).materialize()
    with pytest.raises(orion.ArgumentError, match="not a truth value"):
        matrix().filter(lambda key, v: 1).materialize()


def test_a_shape_is_that_before_what_is_filtered(runs):
    made = matrix().map_keys(lambda i, j: (j, i)).filter(lambda key, v: key[0] == 1).materialize()
    assert runs
    assert made.shape == tuple(n for n in reversed(matrix().extents))
    assert len(matrix().filter(lambda key, v: v > 2.0).map(lambda v: (v, 1))) == 0


def test_names_are_looked_up_when_it_is_computed(runs):
    limit, table = 0.5, np.arange(20)

    def made():
        return matrix().filter(lambda key, v: v > limit).map_keys(lambda i, j: (i, table[j]))

    first = made()
    limit, table[:] = 0.9, 7
    late = first.materialize()
    assert min(late.values) > 0.9
    assert set(late.coords[1]) == {7}
    table[:] = 8
    assert set(made().coords[1]) == {8}
    limit = 0.1
    assert len(made()) == np.count_nonzero(matrix().values > 0.1)
    assert len(runs) == 3


def test_loops_are_kept_while_what_they_depend_on_stays(runs, monkeypatch):
    written = []
    own = elementwise._Writer
    monkeypatch.setattr(elementwise, "_Writer", lambda whole: written.append(1) or own(whole))
    monkeypatch.setattr(elementwise, "_loops", OrderedDict())

    def scaled(factor):
        return matrix().map(lambda v: v * factor).materialize().values

    for factor in (2.0, 2.0, 3.0, 2, 2.0):
        np.testing.assert_array_equal(scaled(factor), matrix().values * factor)
    assert len(written) == 3
    assert len(runs) == 5


def test_random_chains(monkeypatch):
    """Each of some steps after each other, also where only some of them are compiled."""
    steps = [make for name, make in CHAINS.items() if name not in ("three keys", "one key", "far", "near", "values")]
    rng = np.random.default_rng(3)
    for _ in range(12):
        picked = [steps[at] for at in rng.integers(len(steps), size=3)]

        def chain(picked=picked):
            made = matrix()
            for make in picked:
                made = make(made)
            return made

        monkeypatch.setattr(lazy, "COMPILED_FROM", 1)
        assert_same(chain().materialize(), by_python(chain(), monkeypatch))


OPERANDS = {"int64": st.integers(-(2**63), 2**63 - 1), "float64": st.floats(), "float32": st.floats(width=32)}


@settings(max_examples=times(150, 50), deadline=None)
@given(st.data(), st.sampled_from(CASES))
def test_extreme_numbers(data, case):
    name, kind = case
    if kind not in OPERANDS:
        return
    values = np.array(data.draw(st.lists(OPERANDS[kind], min_size=1, max_size=5)), dtype=kind)
    a = orion.sparse((np.arange(len(values)),), values, allow_nan=True)
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        warnings.simplefilter("ignore", RuntimeWarning)
        outcomes = []
        for least in (1, 1 << 60):
            patch.setattr(lazy, "COMPILED_FROM", least)
            try:
                outcomes.append(a.map(MAPS[name][1]).materialize())
            except Exception as error:
                outcomes.append((type(error), str(error)))
    if isinstance(outcomes[0], tuple) or isinstance(outcomes[1], tuple):
        assert outcomes[0] == outcomes[1]
    else:
        for one, other in zip(*((a.values if a.values_are_tuple else [a.values]) for a in outcomes), strict=True):
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one, other)
            np.testing.assert_array_equal(np.signbit(one), np.signbit(other)) if one.dtype.kind == "f" else None
