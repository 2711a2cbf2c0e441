"""The types of arguments, from live values; what a loop cannot work on is refused."""

from __future__ import annotations

import enum
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse

import orion
from orion.errors import ArgumentError
from orion.ir.cures import Used
from orion.ir.signature import argument_types
from orion.ir.types import ArrayType, ScalarType, SparseType


class Level(enum.IntEnum):
    HIGH = 3


def read_only() -> np.ndarray:
    array = np.zeros(3)
    array.setflags(write=False)
    return array


def ratings(values) -> orion.SparseArray:
    return orion.sparse((np.array([0, 2, 1]), np.array([1, 0, 6])), values)


TYPES = [
    ("a Python float", 0.5, ScalarType("float64", weak=True)),
    ("a Python int", 3, ScalarType("int64", weak=True)),
    ("a Python bool", True, ScalarType("bool", weak=True)),
    ("an enumeration of ints", Level.HIGH, ScalarType("int64", weak=True)),
    ("a NumPy float32", np.float32(1), ScalarType("float32")),
    ("a NumPy float64", np.float64(1), ScalarType("float64")),
    ("a NumPy int8", np.int8(1), ScalarType("int8")),
    ("a NumPy bool", np.True_, ScalarType("bool")),
    ("an array", np.zeros((2, 3), np.float32), ArrayType("float32", 2)),
    ("an array of bools", np.zeros(2, bool), ArrayType("bool", 1)),
    ("an array with gaps", np.zeros((4, 6))[:, ::2], ArrayType("float64", 2, c_contiguous=False)),
    ("a Fortran array", np.zeros((4, 6), order="F"), ArrayType("float64", 2, c_contiguous=False)),
    ("a read-only array", read_only(), ArrayType("float64", 1, writeable=False)),
    ("a dense array", orion.zeros((3, 5), dtype="float32"), ArrayType("float32", 2, aligned=True, padded=True)),
    ("a dense row", orion.zeros(3), ArrayType("float64", 1, aligned=True)),
    ("a sparse array", ratings(np.ones(3, np.float32)), SparseType(2, "int32", ("float32",))),
    (
        "a sparse array of pairs",
        ratings((np.ones(3), np.arange(3))),
        SparseType(2, "int32", ("float64", "int64"), False),
    ),
]


@pytest.mark.parametrize(("value", "expected"), [row[1:] for row in TYPES], ids=[row[0] for row in TYPES])
def test_the_type_of_an_argument(value, expected):
    types, _ = argument_types({"x": value})
    assert types == {"x": expected}


def test_shapes_are_those_of_the_arrays_and_one_past_the_keys_of_sparse_ones():
    arguments = {"a": np.zeros((2, 3)), "d": orion.zeros((3, 5)), "r": ratings(np.ones(3)), "x": 0.5}
    assert argument_types(arguments)[1] == {"a": (2, 3), "d": (3, 5), "r": (3, 7)}


def test_types_keep_the_order_of_the_arguments():
    assert list(argument_types({"b": 1, "a": np.zeros(2), "c": 0.5})[0]) == ["b", "a", "c"]


def test_whether_keys_are_unique_is_not_found_out_for_it():
    array = ratings(np.ones(3))
    assert not argument_types({"r": array})[0]["r"].unique_keys
    assert array.unique_keys
    assert argument_types({"r": array})[0]["r"].unique_keys


REFUSED = [
    ("a list", [1, 2], "is a list", "np.array(x)"),
    ("a tuple", (1, 2), "is a tuple", "np.array(x)"),
    ("a range", range(3), "is a range", "np.array(x)"),
    ("a dict", {}, "is a dict", "indexed by integers"),
    ("an object", object(), "is a object", "the numbers and arrays that it holds"),
    ("a long int", 2**63, "more than 64 bits", "a smaller one"),
    ("a fraction", Fraction(1, 2), "is a Fraction", "pass `float(x)`"),
    ("a decimal number", Decimal("0.5"), "is a Decimal", "pass `float(x)`"),
    ("a slice", slice(3), "is a slice", "`start, stop, step = x.indices(len(a))`"),
    ("a span of time", timedelta(1), "is a timedelta", "pass a number, `x.total_seconds()`"),
    ("an array of objects", np.array([1, None]), "is an array of objects", "x.astype(float)"),
    ("an array of strings", np.array(["a"]), "dtype <U1", "np.unique(x, return_inverse=True)"),
    ("an array of dates", np.zeros(2, "datetime64[D]"), "dtype datetime64[D]", "x.view(np.int64)"),
    ("an array of long complex numbers", np.zeros(2, np.clongdouble), "dtype complex256", "x.astype(np.complex128)"),
    ("an array of records", np.zeros(2, [("a", int)]), "is an array of records", "x['a']"),
    ("a half-precision array", np.zeros(2, np.float16), "dtype float16", "astype"),
    ("a byte-swapped array", np.zeros(2, ">f8"), "is in foreign byte order (>f8)", "newbyteorder"),
    ("a byte-swapped scalar array", np.zeros(2, ">i4"), "is in foreign byte order (>i4)", "newbyteorder"),
    ("an array without dimensions", np.array(3.0), "is an array without dimensions", "x.item()"),
    ("a long complex scalar", np.clongdouble(1), "dtype complex256", "complex(x)"),
    ("a matrix", np.matrix([[1.0]]), "is a matrix", "np.asarray(x)"),
    ("a masked array", np.ma.zeros(3), "is a MaskedArray", "x.data"),
    ("a SciPy matrix", scipy.sparse.coo_matrix((3, 3)), "is a coo_matrix", "for p in range(x.nnz):"),
]


@pytest.mark.parametrize(("value", "what", "hint"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_what_a_loop_cannot_work_on_is_refused(value, what, hint):
    with pytest.raises(ArgumentError) as error:
        argument_types({"x": value})
    assert str(error.value).startswith("argument `x` ")
    assert what in str(error.value).splitlines()[0]
    assert hint in str(error.value).partition("  help: ")[2]


def test_the_hint_for_a_byte_swapped_array_works():
    x = np.arange(3, dtype=">f8")
    x = x.astype(x.dtype.newbyteorder("="))
    assert argument_types({"x": x})[0]["x"] == ArrayType("float64", 1)


def test_a_memory_mapped_array_is_an_array(tmp_path):
    mapped = np.memmap(tmp_path / "data", dtype=np.float32, mode="w+", shape=(2, 3))
    types, shapes = argument_types({"x": mapped})
    assert (types["x"], shapes["x"]) == (ArrayType("float32", 2), (2, 3))


def test_a_long_integer_that_is_a_bound_is_to_be_a_smaller_one():
    with pytest.raises(ArgumentError, match=r"pass a smaller one, such as `min\(n, 2\*\*63 - 1\)`: it is part of"):
        argument_types({"n": 2**70}, lambda name: Used(is_index=True))
