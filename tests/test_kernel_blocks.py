"""Blocks of arguments: what a tile finds in them is what it was given."""

from __future__ import annotations

import numpy as np
import pytest
from numba import types

from orion.kernel.build.entries import Packer
from orion.kernel.build.walker import packing

FLOATS = types.Array(types.float64, 2, "C")
STRIDED = types.Array(types.float32, 1, "A")


def packer(*kinds):
    return Packer(kinds, packing())


def test_arrays_have_their_address_lengths_and_strides():
    a, b = np.zeros((3, 4)), np.zeros(20, np.float32)[::-2]
    found = packer(FLOATS, STRIDED).block([a, b])
    assert found.tolist() == [a.ctypes.data, 3, 4, 32, 8, b.ctypes.data, 10, -8]


@pytest.mark.parametrize(
    "array",
    [
        np.zeros((0, 300)), np.random.default_rng(0).normal(size=(0, 300)), np.zeros((3, 4))[:, :0],
        np.zeros((3, 4)).T[0:0], np.zeros((4, 3))[2:3, ::3], np.zeros((1, 4))[:, :3],
    ],
)  # fmt: skip
def test_arrays_that_numpy_calls_contiguous_are_packed_as_such_and_so_are_those_after(array):
    after = np.zeros(3, np.float32)
    found = packer(FLOATS, STRIDED).block([array, after])
    assert found.tolist() == [array.ctypes.data, *array.shape, *array.strides, after.ctypes.data, 3, 4]


def test_what_is_put_later_is_where_it_would_have_been():
    a, one = np.zeros((3, 4)), packer(types.int64, FLOATS, types.float64)
    later = one.block([None, None, None])
    assert not later.any()
    one.pack(later, [None, a, None])
    one.put(later, 0, 7)
    one.put(later, 2, 2.5)
    np.testing.assert_array_equal(later, one.block([7, a, 2.5]))


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (types.int32, np.int32(-3)),
        (types.uint64, np.uint64(2**63)),
        (types.float32, np.float32(0.5)),
        (types.boolean, np.True_),
        (types.complex64, np.complex64(1 - 2j)),
        (types.complex128, np.complex128(1 - 2j)),
    ],
    ids=str,
)
def test_scalars_are_the_first_bytes_of_their_slots(kind, value):
    found = packer(kind, types.int64).block([value, 5])
    assert found.tobytes()[: value.nbytes] == value.tobytes()
    assert found.size == (3 if value.nbytes > 8 else 2)
    assert found[-1] == 5


@pytest.mark.parametrize(
    "wrong",
    [
        np.zeros((3, 4), np.float32),
        np.zeros(12),
        np.zeros((3, 4), order="F"),
        np.zeros((3, 8))[:, ::2],
        np.zeros((6, 4))[::2],
    ],
    ids=["dtype", "rank", "columns", "every other", "rows"],
)
def test_other_arrays_than_were_compiled_for_are_refused(wrong):
    with pytest.raises(TypeError, match="a kernel for arrays"):
        packer(FLOATS).block([wrong])
    with pytest.raises(TypeError, match="a kernel for arrays"):
        packer(FLOATS).pack(np.zeros(5, np.int64), [wrong])


@pytest.mark.parametrize("shape", [(1, 4), (4, 1), (1, 1), (0, 4), (4, 0)])
def test_strides_that_nothing_depends_on_may_be_any(shape):
    odd = np.lib.stride_tricks.as_strided(np.zeros(64), shape, tuple(8 if n > 1 else 24 for n in shape))
    if not odd.flags.c_contiguous:
        pytest.skip("NumPy does not take it for contiguous")
    assert packer(FLOATS).block([odd])[1:3].tolist() == list(shape)
