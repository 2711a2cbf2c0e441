"""Dense arrays: contents, memory layout, random initialisation."""

import numpy as np
import pytest

import orion.arrays as oa
from orion.arrays import random as array_random
from orion.arrays.aligned import is_aligned
from orion.errors import ArgumentError


@pytest.mark.parametrize("shape", [(), (0,), (5,), (3, 1), (4, 10), (3, 16), (0, 7), (7, 0), (2, 3, 5)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "complex128", "bool"])
def test_rows_start_on_cache_lines_and_the_view_hides_the_padding(shape, dtype):
    a = oa.zeros(shape, dtype=dtype)
    assert a.shape == a.view.shape == shape
    assert a.ndim == len(shape)
    assert a.storage.flags.c_contiguous
    assert a.dtype == a.view.dtype == np.dtype(dtype)
    assert a.nbytes == a.storage.nbytes
    if a.storage.size:
        assert is_aligned(a.storage)
        assert is_aligned(a.view)


def test_a_misaligned_row_is_seen():
    a = oa.zeros((4, 16), dtype="float32").storage
    assert is_aligned(a)
    assert not is_aligned(a[:, 1:])
    assert not is_aligned(np.ascontiguousarray(a[:, :10]))


SOURCES = {
    "contiguous": np.arange(12.0).reshape(3, 4),
    "transposed": np.arange(12.0).reshape(4, 3).T,
    "every second": np.arange(24.0).reshape(3, 8)[:, ::2],
    "byte-swapped": np.arange(12, dtype=">i4").reshape(3, 4),
    "read-only": np.broadcast_to(np.arange(4.0), (3, 4)),
    "list": [[1, 2], [3, 4]],
    "scalar": 3.5,
}


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES.keys())
def test_array_copies_any_layout(source):
    a = oa.array(source)
    np.testing.assert_array_equal(a.to_numpy(), source)
    assert a.dtype.isnative
    assert a.storage.flags.writeable
    assert not np.shares_memory(a.storage, np.asarray(source))


@pytest.mark.parametrize(
    "bad", [np.array([object()]), np.array(["a"]), np.zeros(2, "float16"), np.array(["NaT"], "M8[s]")]
)
def test_array_refuses_what_loops_have_no_type_for(bad):
    with pytest.raises(ArgumentError, match="cannot hold elements of type"):
        oa.array(bad)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: oa.zeros((-1, 2)), "negative dimension"),
        (lambda: oa.zeros((2.5,)), "not a shape"),
        (lambda: oa.zeros("ab"), "not a shape"),
        (lambda: oa.zeros(3, dtype="nonsense"), "not an element type"),
        (lambda: oa.full(3, "x"), "cannot hold"),
        (lambda: oa.uniform(3, dtype="int32"), "float32 or float64"),
        (lambda: oa.normal(3, seed=-1), "negative"),
        (lambda: oa.normal(3, std=-1.0), "standard deviation"),
        (lambda: oa.uniform(3, low=2.0, high=1.0), "above"),
        (lambda: oa.uniform(3, low=float("nan")), "above"),
    ],
)
def test_bad_parameters(make, message):
    with pytest.raises(ArgumentError, match=message):
        make()


def test_zeros_ones_full():
    np.testing.assert_array_equal(oa.zeros((2, 3)).to_numpy(), np.zeros((2, 3)))
    np.testing.assert_array_equal(oa.ones((2, 3), dtype="int16").to_numpy(), np.ones((2, 3), "int16"))
    assert oa.full((2, 3), 7).dtype == np.int64
    np.testing.assert_array_equal(oa.full(4, 0.25, dtype="float32").to_numpy(), np.full(4, 0.25, "float32"))
    assert oa.full(4, 0.25, dtype="float32").dtype == np.float32


def test_use_outside_of_loops():
    a = oa.zeros((4, 3))
    a[1] += 2.0
    a[2, 0] = 5.0
    assert a[1].tolist() == [2.0, 2.0, 2.0]
    assert len(a) == 4
    assert [row.sum() for row in a] == [0.0, 6.0, 5.0, 0.0]
    assert np.asarray(a).sum() == 11.0
    assert np.shares_memory(np.asarray(a), a.storage)
    assert not np.shares_memory(a.to_numpy(), a.storage)
    assert np.array(a, dtype="float32").dtype == np.float32
    assert repr(a) == "DenseArray(shape=(4, 3), dtype=float64)"


def test_replace_storage_moves_the_array():
    a = oa.array(np.arange(6.0).reshape(2, 3))
    moved = oa.zeros((2, 3)).storage
    moved[...] = a.storage
    a.replace_storage(moved)
    assert a.storage is moved
    np.testing.assert_array_equal(a.to_numpy(), np.arange(6.0).reshape(2, 3))


def _read_only_copy(storage):
    copy = oa.zeros((2, 3)).storage
    copy.flags.writeable = False
    return copy


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda old: np.zeros((2, 3)), "not float64"),
        (lambda old: old.astype("float32"), "like the old one"),
        (np.asfortranarray, "C-contiguous"),
        (_read_only_copy, "writeable"),
        (lambda old: oa.zeros(17).storage[1:].reshape(2, 8), "aligned"),
    ],
)
def test_replace_storage_refuses(make, message):
    a = oa.ones((2, 3))
    before = a.storage
    with pytest.raises(ArgumentError, match=message):
        a.replace_storage(make(before))
    assert a.storage is before


@pytest.mark.parametrize("draw", [oa.uniform, oa.normal])
@pytest.mark.parametrize("shape", [(), (5,), (70_000,), (3000, 33), (2, 70_000), (10, 100, 100)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_random_values_depend_on_seed_and_shape_alone(draw, shape, dtype):
    a, b, other = (draw(shape, dtype=dtype, seed=s).to_numpy() for s in (3, 3, 4))
    np.testing.assert_array_equal(a, b)
    assert a.shape == shape
    assert a.dtype == np.dtype(dtype)
    assert not np.array_equal(a, other)


def test_any_block_can_be_drawn_alone():
    """What makes the values the same for every number of workers: block 2 needs neither block 0 nor block 1."""
    cols, seed = 40, 11
    whole = oa.uniform((5000, cols), seed=seed).to_numpy()
    rows = array_random.BLOCK_ELEMENTS // cols
    key = np.random.SeedSequence(seed).generate_state(2, np.uint64)
    generator = np.random.Generator(np.random.Philox(key=key, counter=np.array([0, 2, 0, 0], np.uint64)))
    np.testing.assert_array_equal(whole[2 * rows : 3 * rows], generator.random((rows, cols)))


def test_blocks_differ_from_each_other():
    blocks = oa.normal(4 * array_random.BLOCK_ELEMENTS, seed=0).to_numpy().reshape(4, -1)
    assert abs(np.corrcoef(blocks) - np.eye(4)).max() < 0.02


def test_without_a_seed_values_differ():
    assert not np.array_equal(oa.uniform(8).to_numpy(), oa.uniform(8).to_numpy())


def test_distributions():
    u = oa.uniform(200_000, low=-1.0, high=3.0, seed=5).to_numpy()
    assert u.min() >= -1.0
    assert u.max() < 3.0
    assert abs(u.mean() - 1.0) < 0.01
    g = oa.normal(200_000, mean=2.0, std=0.5, seed=5).to_numpy()
    assert abs(g.mean() - 2.0) < 0.01
    assert abs(g.std() - 0.5) < 0.01


@pytest.mark.parametrize("least", [1, 1 << 60])
def test_map(least, monkeypatch):
    monkeypatch.setattr("orion.arrays.lazy.COMPILED_FROM", least)
    monkeypatch.setattr("orion.arrays.lazy.AT_ONCE", 3)
    for shape in ((), (7,), (3, 5), (2, 3, 2), (0, 4)):
        a = oa.array(np.arange(np.prod(shape, dtype=int), dtype="float32").reshape(shape))
        made = a.map(lambda v: v * 2 + 1)
        assert (made.shape, made.dtype) == (shape, np.float32)
        np.testing.assert_array_equal(made.view, a.view * 2 + 1)
        assert a.map(lambda v: v > 3).dtype == (bool if a.view.size else np.float32)
    mixed = oa.array([1.5, 2.5]).map(lambda v: v if v > 2 else 0)
    assert mixed.to_numpy().tolist() == [0.0, 2.5]


def test_map_is_refused_with_the_element():
    a = oa.array([[1.0, 2.0], [4.0, 0.0]])
    with pytest.raises(ZeroDivisionError, match=r"for the element with the key \(1, 1\) and the value 0.0"):
        a.map(lambda v: 1 / int(v))
    for f, message in (
        (lambda v: "x", "'x' is a str"),
        (lambda v: (v, v), "returns tuples"),
        (lambda v: v if v < 3 else None, r"\(1, 0\)(.|\n)*NoneType"),
        (lambda a, b: a, r"f\(v\); the lambda"),
        (3, "takes a function"),
    ):
        with pytest.raises(ArgumentError, match=message):
            a.map(f)
    with pytest.raises(AttributeError, match="a dense array has no `filter`"):
        a.filter(lambda key, v: True)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = a.nothing
