"""Arrays that are none of NumPy's, by one protocol each, and what is told of where their memory lies."""

from __future__ import annotations

import array
import ctypes
import mmap

import numpy as np


class ByDlpack:
    """What exports NumPy memory by DLPack, from version 1 on; `device` is what it says of where that is."""

    def __init__(self, data, device=(1, 0)):
        self.data, self.dtype, self.where = data, data.dtype, device

    def __dlpack__(self, **keywords):
        return self.data.__dlpack__(**keywords)

    def __dlpack_device__(self):
        return self.where


class ByOldDlpack(ByDlpack):
    """DLPack before version 1: it does not say whether the memory may be written."""

    def __dlpack__(self, stream=None):
        return self.data.__dlpack__()


class OldTensor(ByOldDlpack):
    """The same, of a library whose arrays NumPy can write."""

    def __array__(self):
        return self.data


class OnDevice(ByDlpack):
    """An array of a device, as PyTorch has them."""

    def __init__(self, data):
        super().__init__(data, (2, 0))
        self.device = "cuda:0"

    def cpu(self):
        return np.array(self.data)

    def copy_(self, other):
        self.data[...] = other


class WithGradients(ByDlpack):
    requires_grad = True

    def detach(self):
        return ByDlpack(self.data)


class Negated(ByDlpack):
    """A tensor whose memory has the negated elements; its library exports it all the same."""

    def is_neg(self):
        return True

    def resolve_neg(self):
        return ByDlpack(-self.data)


class ByInterface:
    def __init__(self, data):
        self.data = data

    @property
    def __array_interface__(self):
        return self.data.__array_interface__


class MadeEachTime:
    """An image, say, whose bytes are decoded when they are asked for."""

    def __init__(self, data):
        self.data, self.kept = data, []

    @property
    def __array_interface__(self):
        self.kept.append(self.data.copy())
        return self.kept[-1].__array_interface__


class ByArray:
    """A column of a table: `__array__` alone, which may be a view of what nobody may change."""

    def __init__(self, data, copies=False):
        self.data, self.copies = data, copies

    def __array__(self, dtype=None, copy=None):
        if copy is False and self.copies:
            raise ValueError("a copy cannot be avoided")
        return self.data.copy() if self.copies else self.data


def mapped(numbers):
    """A memory map that holds some numbers."""
    found = mmap.mmap(-1, numbers.nbytes)
    found.write(numbers.tobytes())
    return found


NUMBERS = np.arange(1.0, 6.0)
BYTES = np.arange(1, 6, dtype=np.uint8)

WRITEABLE = {
    "DLPack": lambda: ByDlpack(NUMBERS.copy()),
    "strided DLPack": lambda: ByDlpack(np.repeat(NUMBERS, 2)[::2]),
    "reversed DLPack": lambda: ByDlpack(NUMBERS[::-1].copy()[::-1]),
    "DLPack before version 1": lambda: OldTensor(NUMBERS.copy()),
    "__array_interface__": lambda: ByInterface(NUMBERS.copy()),
    "array.array": lambda: array.array("d", NUMBERS),
    "array.array of integers": lambda: array.array("q", NUMBERS.astype(int)),
    "bytearray": lambda: bytearray(BYTES),
    "memoryview": lambda: memoryview(bytearray(NUMBERS.tobytes())).cast("d"),
    "memoryview of an array": lambda: memoryview(NUMBERS.copy()),
    "mmap": lambda: mapped(BYTES),
    "ctypes": lambda: (ctypes.c_float * 5)(*NUMBERS),
}
"""What holds 1, 2, 3, 4, 5 and may be changed."""

READ_ONLY = {
    "DLPack": lambda: ByDlpack(fixed(NUMBERS.copy())),
    "DLPack before version 1": lambda: ByOldDlpack(NUMBERS.copy()),
    "__array_interface__": lambda: ByInterface(fixed(NUMBERS.copy())),
    "__array__": lambda: ByArray(NUMBERS.copy()),
    "bytes": lambda: bytes(BYTES),
    "memoryview": lambda: memoryview(bytes(BYTES)),
}


def fixed(data):
    data.flags.writeable = False
    return data


def elements(value):
    """The elements of one of these, as Python's numbers."""
    held = getattr(value, "data", value)
    return np.asarray(held if isinstance(held, np.ndarray) else memoryview(held)).tolist()


def address(value):
    """Where the memory of one of these begins."""
    held = getattr(value, "data", value)
    found = held if isinstance(held, np.ndarray) else np.asarray(memoryview(held))
    return found.__array_interface__["data"][0]
