"""Arrays in a file: a zip archive of NumPy's `.npy` members, and one of JSON that says what they are.

    orion.json        {"format": "orion arrays", "version": 1, "values": {"W": {"kind": "dense", ...}, ...}}
    W.npy             a dense array, without padding; also a NumPy array
    R.key0.npy, …     a sparse array: the keys of its elements by dimension, in the order they were given in,
    R.value0.npy, …   and their values

Of an array that was shuffled, orion.json has the last shuffle, "shuffle": {"epoch": 3, ...}, so that the next goes on
from it.

Any program that reads zip archives and NumPy's format can read it; nothing in it is pickled. Each member has a CRC-32,
which is compared when it is read. A file is whole or not there: it is written under another name first, brought to the
disk, and then renamed (`rename` is atomic: POSIX, IEEE 1003.1).
"""

from __future__ import annotations

import errno
import json
import zlib
from collections.abc import Iterable, Mapping
from math import prod
from pathlib import Path
from typing import IO, Any
from zipfile import BadZipFile, ZipFile, ZipInfo

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from orion.arrays.check import checked_keys, checked_values
from orion.arrays.dense import DenseArray
from orion.arrays.dtypes import SUPPORTED, supported_dtype
from orion.arrays.files.whole import refuse_special, write_whole
from orion.arrays.shuffled import Shuffled, shuffle_to_plain, shuffled_as_told
from orion.arrays.sparse import SparseArray, adopt
from orion.arrays.storage import current_storage
from orion.errors import ArgumentError, DataFormatError, StorageError, describe

DAMAGED = (
    BadZipFile, zlib.error, ValueError, KeyError, TypeError, EOFError, NotImplementedError, RuntimeError,
    AttributeError, OverflowError, MemoryError,
)  # fmt: skip
"""What reading a file raises that is not as it was written."""

FORMAT, VERSION = "orion arrays", 1
CONTENTS = "orion.json"
MOST_LETTERS = 1000
AT_ONCE = 1 << 22
"""Bytes that are read at a time."""

PLAIN = (np.ndarray, np.memmap)
"""Arrays that are nothing more: those of classes of their own, with masks or units, would lose that."""


# ---------------------------------------------------------------- writing


def write_archive(path: Path, values: Mapping[str, object]) -> None:
    """Write values to a file, which replaces one that is there and keeps its permissions; where `path` is a link, that
    which it leads to.

    `ArgumentError` for a name or a value that no archive holds, `StorageError` where the file cannot be written, as on
    a full disk: what was at `path` is then as it was, and nothing of the new file is left.
    """
    contents = {name: _described(name, value) for name, value in values.items()}
    _check_names(values)
    write_whole(path, lambda file: _write(file, contents, values))


def _check_names(values: Mapping[str, object]) -> None:
    """ArgumentError for names that no member can have, or that stand for the same members."""
    found = {CONTENTS: ""}
    for name, value in values.items():
        if "\0" in name or len(name) > MOST_LETTERS or not name.isprintable():
            raise ArgumentError(f"{name[:40]!r} is no name for a value in a file")
        for member in _names(name, value):
            if f"{member}.npy" in found:
                what = f"`{name}` and `{found[f'{member}.npy']}` would both be `{member}.npy` in a file"
                raise ArgumentError(describe(what, hint="choose another name for one of them"))
            found[f"{member}.npy"] = name


def _write(file: IO[bytes], contents: Mapping[str, Any], values: Mapping[str, object]) -> None:
    with ZipFile(file, "w") as archive:
        text = json.dumps({"format": FORMAT, "version": VERSION, "values": contents}, indent=1)
        archive.writestr(ZipInfo(CONTENTS), text)
        for name, value in values.items():
            for member, array in zip(_names(name, value), _arrays(value), strict=True):
                with archive.open(ZipInfo(f"{member}.npy"), "w", force_zip64=True) as part:
                    npy.write_array(part, array, allow_pickle=False)


def _described(name: str, value: object) -> dict[str, Any]:
    match value:
        case DenseArray():
            return {"kind": "dense", "shape": value.shape, "dtype": value.dtype.name, **_shuffle(value)}
        case SparseArray():
            kinds = [one.name for one in value.value_dtypes]
            own = {"kind": "sparse", "shape": value.shape, "dtypes": kinds, "is_tuple": value.values_are_tuple}
            return {**own, **_shuffle(value)}
        case np.ndarray() if type(value) in PLAIN and value.dtype.newbyteorder("=") in SUPPORTED:
            return {"kind": "numpy", "shape": value.shape, "dtype": value.dtype.name}
        case bool() | int() | float() | str() | None:
            return {"kind": "plain", "value": value}
        case np.generic() if value.dtype in SUPPORTED and value.dtype.kind != "c":
            return {"kind": "scalar", "value": value.item(), "dtype": value.dtype.name}
        case _:
            of = f" of {value.dtype}" if isinstance(value, np.ndarray) else ""
            what = f"`{name}` is a {type(value).__name__}{of}, which no file of arrays holds"
            raise ArgumentError(describe(what, hint="save arrays of numbers, numbers and strings"))


def _shuffle(array: Shuffled) -> dict[str, Any]:
    """The last shuffle of an array, where there was one."""
    told = shuffle_to_plain(array)
    return {} if told is None else {"shuffle": told}


def _names(name: str, value: object) -> list[str]:
    """The names of the members that a value is made of."""
    match value:
        case SparseArray():
            kinds = [("key", value.ndim), ("value", len(value.value_dtypes))]
            return [f"{name}.{kind}{place}" for kind, count in kinds for place in range(count)]
        case DenseArray() | np.ndarray():
            return [name]
        case _:
            return []


def _arrays(value: object) -> Iterable[NDArray[Any]]:
    """The arrays that these members hold."""
    match value:
        case SparseArray():
            given = value.as_given
            return *given.keys, *given.values
        case DenseArray():
            return (value.view,)
        case np.ndarray():
            return (value.astype(value.dtype.newbyteorder("="), copy=False),)
        case _:
            return ()


# ---------------------------------------------------------------- reading


def read_archive(path: Path) -> dict[str, Any]:
    """The values in a file. `DataFormatError` where it is none of arrays, or is damaged; `StorageError` where it cannot
    be opened."""
    path = path.expanduser()
    refuse_special(path, "read")
    try:
        with ZipFile(path) as archive:
            contents = _contents(path, archive)
            found = {name: _value(archive, name, one) for name, one in contents.items()}
            wanted = {CONTENTS, *(f"{member}.npy" for name, one in found.items() for member in _names(name, one))}
            if {*archive.namelist()} != wanted:
                raise ValueError("its members are not those that it says it has")
            return found
    except (DataFormatError, StorageError):
        raise
    except OSError as error:
        if error.errno != errno.EINVAL:  # what there is at a wrong place in the file
            raise StorageError(describe(f"{path} cannot be read", why=error.strerror or str(error))) from error
        raise _damaged(path, error) from error
    except DAMAGED as error:
        raise _damaged(path, error) from error


def _damaged(path: Path, error: Exception) -> DataFormatError:
    what, hint = f"{path} is damaged, or no file of arrays", "take an earlier file, or save it anew"
    return DataFormatError(describe(what, why=str(error), hint=hint))


def _contents(path: Path, archive: ZipFile) -> dict[str, Any]:
    found = json.loads(archive.read(CONTENTS))
    if found["format"] != FORMAT:
        raise ValueError(f"it is a file of {found['format']}")
    if found["version"] != VERSION:
        hint = "read it with the version of Orion that wrote it, or a later one"
        what = f"{path} has version {found['version']} of the format, this Orion reads {VERSION}"
        raise DataFormatError(describe(what, hint=hint))
    contents: dict[str, Any] = found["values"]
    return contents


def _value(archive: ZipFile, name: str, told: Mapping[str, Any]) -> Any:
    match told["kind"]:
        case "plain":
            return told["value"]
        case "scalar":
            return supported_dtype(told["dtype"]).type(told["value"])
        case "dense":
            array = DenseArray(tuple(told["shape"]), supported_dtype(told["dtype"]))
            array.view[...] = _array(archive, name, told["shape"], told["dtype"])
            shuffled_as_told(array, told.get("shuffle"))
            return array
        case "numpy":
            return _array(archive, name, told["shape"], told["dtype"])
        case "sparse":
            keys = tuple(_array(archive, f"{name}.key{dim}") for dim in range(len(told["shape"])))
            names = [f"{name}.value{place}" for place in range(len(told["dtypes"]))]
            values = tuple(_array(archive, n, None, one) for n, one in zip(names, told["dtypes"], strict=True))
            found = checked_keys(keys), checked_values(values, len(keys[0]), True, names)
            sparse = adopt(*found, tuple(told["shape"]), bool(told["is_tuple"]))
            shuffled_as_told(sparse, told.get("shuffle"))
            return sparse
        case kind:
            raise ValueError(f"`{name}` is of kind {kind!r}")


def _array(archive: ZipFile, member: str, shape: list[int] | None = None, dtype: str | None = None) -> NDArray[Any]:
    with archive.open(f"{member}.npy") as part:
        array = _read_array(part, archive.getinfo(f"{member}.npy").file_size)
        if part.read(1):  # the CRC is compared at the end
            raise ValueError(f"`{member}` is longer than it says")
    if shape is not None and array.shape != tuple(shape):
        raise ValueError(f"`{member}` has the shape {array.shape}, not {tuple(shape)}")
    if dtype is not None and array.dtype != np.dtype(dtype):
        raise ValueError(f"`{member}` has elements of {array.dtype}, not {dtype}")
    return array


def _read_array(part: IO[bytes], size: int) -> NDArray[Any]:
    """An array in NumPy's format, which takes `size` bytes there, part by part, into memory or, where it is long, into
    a mapped file."""
    version = npy.read_magic(part)
    read_header = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}.get(version)
    if read_header is None:
        raise ValueError(f"an array in version {version} of NumPy's format")
    shape, is_fortran, dtype = read_header(part)
    if dtype.hasobject:
        raise ValueError("an array of objects")
    if prod(shape) * dtype.itemsize > size:
        raise ValueError(f"an array of shape {shape} in {size:,} bytes")
    array = current_storage().empty(prod(shape), dtype)
    octets, done = array.view(np.uint8), 0
    while done < len(octets):
        found = part.readinto(octets[done : done + AT_ONCE].data)  # type: ignore[attr-defined]
        if not found:
            raise EOFError(f"an array ends after {done:,} of {len(octets):,} bytes")
        done += found
    return array.reshape(shape[::-1]).T if is_fortran else array.reshape(shape)
