"""Random chains of steps: what Python makes of lists of (key, value), however many elements are looked at at once."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import orion
from orion.arrays import lazy

OFFSET = 5
LOOKED_UP = np.array([3, 0, 2, 1, 7, 7, 4, 5], np.int32)

MAPS = {  # of one value
    "twice": lambda v: v * 2,
    "half": lambda v: v / 2,
    "square": lambda v: v**2,
    "constant": lambda v: 1,
    "sign": lambda v: v > 0,
    "some are zero": lambda v: v if v > 0 else 0,
    "some are floats": lambda v: 0.1 if v > 0 else int(v),
    "two": lambda v: (v, v + 1),
    "two of other types": lambda v: (float(v), v > 1),
    "narrow": lambda v: np.float32(v) * 0.1,
    "compared": lambda v: v == 0.1,
    "whole": int,
}
MAPS_OF_TWO = {
    "sum": lambda a, b: a + b,
    "swapped": lambda a, b: (b, a),
    "first": lambda a, b: a,
    "larger": max,
    "product": lambda a, b: a * np.float64(b),
}
KEYS = {
    1: {
        "pair": lambda i: (i, i % 3),
        "moved": lambda i: i + OFFSET,
        "same": lambda i: 0,
        "far": lambda i: i % 8 * 2**30,
    },
    2: {
        "turned": lambda i, j: (j, i),
        "one": lambda i, j: i,
        "sum": lambda i, j: (i + j, j % 2),
        "three": lambda i, j: (i, j, abs(i - j)),
        "array": lambda i, j: (LOOKED_UP[i % 8], LOOKED_UP[j % 8]),
    },
    3: {"less": lambda i, j, k: (k, i), "divided": lambda i, j, k: (i // 2, j, k % 5)},
}
FILTERS = {
    "all": lambda key, v: True,
    "none": lambda key, v: False,
    "even": lambda key, v: key[0] % 2 == 0,
    "large": lambda key, v: np.sum(v) > 1,
    "different": lambda key, v: len(set(key)) == len(key),
}


class Model:
    """Elements as a list, and what steps make of it."""

    def __init__(self, keys, columns, is_tuple, shape):
        self.keys, self.columns, self.is_tuple, self.shape = keys, columns, is_tuple, shape

    @property
    def values(self):
        rows = list(zip(*self.columns, strict=True))
        return rows if self.is_tuple else [row[0] for row in rows]

    def map(self, f):
        results = [f(*row) for row in zip(*self.columns, strict=True)]
        if not results:
            return self
        is_tuple = isinstance(results[0], tuple)
        columns = zip(*results, strict=True) if is_tuple else [results]
        return Model(self.keys, [np.array(column, dtype=dtype_of(column)) for column in columns], is_tuple, self.shape)

    def map_keys(self, f, shape):
        keys = [f(*key) for key in self.keys]
        keys = [tuple(map(int, key)) if isinstance(key, tuple) else (key,) for key in keys]
        dims = len(keys[0]) if keys else len(shape or self.shape)
        extents = tuple(max((key[d] for key in keys), default=-1) + 1 for d in range(dims))
        return Model(keys, self.columns, self.is_tuple, shape or extents)

    def filter(self, f):
        kept = [at for at, (key, v) in enumerate(zip(self.keys, self.values, strict=True)) if f(key, v)]
        columns = [column[kept] for column in self.columns]
        return Model([self.keys[at] for at in kept], columns, self.is_tuple, self.shape)


def dtype_of(column):
    """Python's numbers adapt to NumPy's."""
    plain = {bool: np.dtype(bool), int: np.dtype("int64"), float: np.dtype("float64")}
    kinds = {type(v) for v in column}
    if kinds <= {*plain}:
        return np.result_type(*(plain[kind] for kind in kinds))
    return np.result_type(*(kind(0) if kind in (int, float) else np.dtype(kind) for kind in kinds))


def same(array, model):
    assert array.shape == model.shape
    assert array.values_are_tuple == model.is_tuple
    assert list(zip(*(k.tolist() for k in array.coords), strict=True)) == model.keys
    for found, wanted in zip(array.values if model.is_tuple else [array.values], model.columns, strict=True):
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted)


@st.composite
def arrays(draw):
    dims, count = draw(st.integers(1, 3)), draw(st.integers(0, 12))
    keys = [tuple(draw(st.integers(0, 7)) for _ in range(dims)) for _ in range(count)]
    kinds = draw(st.sampled_from([["float32"], ["float64"], ["int64"], ["int8"], ["float32", "int64"], ["bool"]]))
    numbers = st.sampled_from([0, 1, -1, 2, 3, 0.5, 0.1, 100])
    columns = [np.array([draw(numbers) for _ in range(count)]).astype(kind) for kind in kinds]
    return Model(keys, columns, len(kinds) > 1, (8,) * dims)


STEPS = st.sampled_from(["map", "map", "map_keys", "filter", "shuffle", "materialize"])


@settings(max_examples=400, deadline=None)
@given(arrays(), st.lists(STEPS, max_size=6), st.data(), st.sampled_from([1, 2, 3, 1 << 16]))
def test_chains(model, steps, data, at_once):
    coords = tuple(np.array([key[d] for key in model.keys], dtype=np.int64) for d in range(len(model.shape)))
    columns = tuple(model.columns) if model.is_tuple else model.columns[0]
    array = orion.sparse(coords, columns, shape=model.shape)
    with pytest.MonkeyPatch.context() as patch, np.errstate(all="ignore"):
        patch.setattr(lazy, "AT_ONCE", at_once)
        for step in steps:
            array, model = taken(step, array, model, data)
        same(array, model)
        dim = data.draw(st.integers(0, len(model.shape) - 1))
        check_groups(array.group_by(dim), model, dim)


def taken(step, array, model, data):
    """One more step of both."""
    dims = len(model.shape)
    if step == "map":
        table = MAPS if len(model.columns) == 1 else MAPS_OF_TWO
        f = table[data.draw(st.sampled_from([*table]))]
        return array.map(f), model.map(f)
    if step == "map_keys":
        f = KEYS[dims][data.draw(st.sampled_from([*KEYS[dims]]))]
        results = model.map_keys(f, None)
        far = any(length > 2**24 for length in results.shape)
        shape = (2**45,) * len(results.shape) if far or data.draw(st.booleans()) else None
        if not model.keys and shape is None:
            return array.map_keys(f), results
        return array.map_keys(f, shape), model.map_keys(f, shape)
    if step == "filter":
        f = FILTERS[data.draw(st.sampled_from([*FILTERS]))]
        return array.filter(f), model.filter(f)
    if step == "shuffle" and max(model.shape) <= 1000:
        dim, seed = data.draw(st.integers(0, dims - 1)), data.draw(st.integers(0, 3))
        shuffled = array.shuffle_keys(dim, seed)
        p = array.key_permutation(dim, seed)
        keys = [tuple(int(p[k]) if d == dim else k for d, k in enumerate(key)) for key in model.keys]
        return shuffled, Model(keys, model.columns, model.is_tuple, model.shape)
    return (array.materialize() if step == "materialize" else array), model


def check_groups(groups, model, dim):
    wanted = sorted({key[dim] for key in model.keys})
    assert list(groups) == wanted
    assert len(groups) == len(wanted)
    assert groups.sizes.tolist() == [sum(key[dim] == one for key in model.keys) for one in wanted]
    for key, own in groups.items():
        same(own, model.filter(lambda found, _, key=key: found[dim] == key))
