"""How the walker calls a tile: an entry that takes its arguments from a block of memory.

The walker (`orion.kernel.build.walker`) is compiled once for all loops. So it knows nothing of the arguments of a tile
but where they lie: in a block of 64-bit slots, in the order of the tile's arguments after its number and the round. An
array has its address, its lengths and its strides there, a scalar its bytes, from the beginning of a slot. The entry is
made of LLVM's instructions in place of the wrapper for Python that Numba would make, so that Numba does not look at it:
a tile costs what `njit` takes for its loop.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from functools import reduce
from itertools import accumulate
from math import prod
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import register_pass
from numba.core.lowering import Lower
from numba.core.typed_passes import BaseNativeLowering, NativeLowering
from numba.core.types import UniTuple  # type: ignore[attr-defined]
from numba.core.untyped_passes import TranslateByteCode
from numba.extending import intrinsic
from numba.np.numpy_support import as_dtype
from numpy.typing import NDArray

from orion.kernel.build.shared_values import SharedValues
from orion.kernel.calling import SLOT

I64 = ir.IntType(64)
ENTRY = (types.int64, types.int64, types.int64)
"""The types of what an entry is given: the address of the block, the number of the tile, the round."""

FIXED = types.Array(types.int64, 1, "C", readonly=True)
FLAGS = types.Array(types.int64, 1, "C")

WALK = (types.int64, FIXED, FIXED, types.int64, FIXED, FIXED, FIXED, FLAGS, FLAGS)
FIXED_ROWS = types.Array(types.int64, 2, "C", readonly=True)
FOLLOW = (FIXED_ROWS, FLAGS, FIXED_ROWS, FLAGS)
"""The types of what a walk is given, and what follows instructions (`orion.kernel.build.walker`)."""

AHEAD_OF_LENGTHS = 5
"""How many numbers Numba's record of an array has before its lengths, the last of which is the address."""

OWN = 2
"""How many arguments of a tile are no part of the block: its number and the round."""

KIND = object.__basicsize__ - 8
DATA, RANK, LENGTHS, STRIDES, DTYPE, FLAGGED = (object.__basicsize__ + offset for offset in (0, 8, 16, 24, 40, 48))
"""Where NumPy's record of an array has its class, the address of its elements, its rank (32 bits), the addresses of its
lengths and strides, its dtype, and its flags (32 bits): `PyArrayObject_fields`, which its C interface promises."""

OF_LAYOUT = 0x100 | 0x400
"""The flags that matter: whether it lies at multiples of its elements' size, and may be written."""

FORMATS = {"b": "?7x", "i": "q", "u": "Q", "f4": "f4x", "f8": "d", "c8": "ff", "c16": "dd"}
"""How a scalar is packed, by the kind of its dtype, with its size where that matters. Narrow integers are the lowest
bytes of a slot."""


# ---------------------------------------------------------------- compiled


class EntryLower(Lower):  # type: ignore[misc]
    """Numba's lowering, with the entry in place of the wrapper for Python."""

    def lower_normal_function(self, described: Any) -> None:
        """Add the tile to its module, and the entry by the name that the wrapper would have."""
        super().lower_normal_function(described)
        convention = self.context.call_conv
        kind = convention.get_function_type(types.none, ENTRY)
        entry = ir.Function(self.module, kind, described.llvm_cpython_wrapper_name)
        builder = ir.IRBuilder(entry.append_basic_block("entry"))
        _, raised, block, number, round = entry.args
        fields = _Fields(self.context, builder, block)
        packed = [part for kind in described.argtypes[OWN:] for part in fields.packed(kind)]
        unused = cgutils.alloca_once(builder, self.function.args[0].type.pointee)
        builder.ret(builder.call(self.function, [unused, raised, number, round, *packed]))

    def create_cpython_wrapper(self, release_gil: bool = False) -> None:
        """Leave it: the entry is there already."""

    def lower_getitem(self, resty: Any, expr: Any, value: Any, index: Any, signature: Any) -> Any:
        """Load an element as Numba does, without looking through all that `getitem` may mean."""
        place = self._place(value, index)
        if place is None:
            return super().lower_getitem(resty, expr, value, index, signature)
        kind = self.typeof(value.name)
        found = self.context.unpack_value(self.builder, kind.dtype, place, align=None if kind.aligned else 1)
        return self.context.cast(self.builder, found, kind.dtype, resty)

    def lower_setitem(self, target: Any, index: Any, value: Any, signature: Any) -> Any:
        """Store an element in the same way."""
        place = self._place(target, index)
        if place is None:
            return super().lower_setitem(target, index, value, signature)
        kind = self.typeof(target.name)
        number = self.context.cast(self.builder, self.loadvar(value.name), self.typeof(value.name), kind.dtype)
        return self.context.pack_value(self.builder, kind.dtype, number, place, align=None if kind.aligned else 1)

    def _place(self, array: Any, index: Any) -> Any:
        """The address of an element at unsigned subscripts; None where it is something else."""
        kind, given = self.typeof(array.name), self.typeof(index.name)
        is_tuple = isinstance(given, UniTuple)
        count, subscript = (given.count, given.dtype) if is_tuple else (1, given)
        if not isinstance(kind, types.Array) or kind.ndim != count or subscript != types.uint64:
            return None
        if not isinstance(kind.dtype, types.Number | types.Boolean) or self.context.enable_boundscheck:
            return None
        record, found, builder = self.loadvar(array.name), self.loadvar(index.name), self.builder
        parts = cgutils.unpack_tuple(builder, found) if is_tuple else [found]
        data, *sizes = (builder.extract_value(record, AHEAD_OF_LENGTHS + k) for k in range(-1, 2))
        lengths, strides = (cgutils.unpack_tuple(builder, one) for one in sizes)
        return cgutils.get_item_pointer2(self.context, builder, data, lengths, strides, kind.layout, parts)


class _Fields:
    """Reads values from a block, one after the other."""

    def __init__(self, context: Any, builder: Any, block: Any) -> None:
        self._context, self._builder = context, builder
        self._slots = builder.inttoptr(block, I64.as_pointer())
        self._at = 0

    def packed(self, kind: types.Type) -> list[Any]:
        """The next argument, of that type, as a function takes it."""
        if isinstance(kind, types.Array):
            address = self.next(I64)
            return self.parts(kind, address, *([self.next(I64) for _ in range(kind.ndim)] for _ in range(2)))
        stored = self.next(self._context.get_data_type(kind))
        value = self._context.data_model_manager[kind].from_data(self._builder, stored)
        packer = self._context.call_conv._get_arg_packer((kind,))
        return [*packer.as_arguments(self._builder, [value])]

    def array(self, kind: types.Array, address: Any, lengths: Sequence[Any], strides: Sequence[Any]) -> Any:
        array = self._context.make_array(kind)(self._context, self._builder)
        *parts, array.data = self.parts(kind, address, lengths, strides)[:AHEAD_OF_LENGTHS]
        array.meminfo, array.parent, array.nitems, array.itemsize = parts
        array.shape, array.strides = (cgutils.pack_array(self._builder, one, I64) for one in (lengths, strides))
        return array._getvalue()

    def parts(self, kind: types.Array, address: Any, lengths: Sequence[Any], strides: Sequence[Any]) -> list[Any]:
        """What Numba's record of an array has, one number after the other."""
        meminfo, parent, _, _, data, _, _ = self._context.get_value_type(kind).elements
        count, size = reduce(self._builder.mul, lengths) if lengths else I64(1), as_dtype(kind.dtype).itemsize
        return [
            meminfo(None),
            parent(None),
            count,
            I64(size),
            self._builder.inttoptr(address, data),
            *lengths,
            *strides,
        ]

    def next(self, kind: Any) -> Any:
        place = self._builder.gep(self._slots, [I64(self._at)])
        size = self._context.get_abi_sizeof(kind) if isinstance(kind, ir.LiteralStructType) else SLOT
        self._at += -(-size // SLOT)
        return self._builder.load(self._builder.bitcast(place, kind.as_pointer()))


@register_pass(mutates_CFG=True, analysis_only=False)
class EntryLowering(BaseNativeLowering):  # type: ignore[misc]
    """The pass that lowers a tile."""

    _name = "orion_entry_lowering"

    @property
    def lowering_class(self) -> type[EntryLower]:
        return EntryLower


class TileCompiler(CompilerBase):  # type: ignore[misc]
    """Numba's compiler for tiles, told that no two arguments overlap where one of them is written.

    The alias check at each call of a loop makes this so. It holds for one tile: what another worker writes meanwhile is
    never touched by it, but for copies of arrays while they are pulled (`replicas.py`).
    """

    def define_pipelines(self) -> list[Any]:
        self.state.flags.noalias = self.state.flags.no_cfunc_wrapper = True
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.passes = [(EntryLowering if one is NativeLowering else one, text) for one, text in passes.passes]
        passes.add_pass_after(SharedValues, TranslateByteCode)
        passes.finalize()
        return [passes]


def address_of(dispatcher: Any) -> int:
    """The address of the entry of a tile that has been compiled."""
    return _address(dispatcher, "llvm_cpython_wrapper_name")


def own_address_of(dispatcher: Any) -> int:
    """The address of a compiled function itself."""
    return _address(dispatcher, "llvm_func_name")


def _address(dispatcher: Any, name: str) -> int:
    (found,) = dispatcher.overloads.values()
    return int(found.library.get_pointer_to_function(getattr(found.fndesc, name)))


def _called_at(*kinds: types.Type) -> Any:
    """What calls the function at an address that takes arguments of these types. What it raises goes on from here."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        convention = context.call_conv
        kind = convention.get_function_type(types.none, kinds)
        function = builder.inttoptr(args[0], kind.as_pointer())
        unused, raised = (cgutils.alloca_once(builder, one.pointee) for one in kind.args[:2])
        packed = convention._get_arg_packer(kinds).as_arguments(builder, args[1:])
        code = builder.call(function, [unused, raised, *packed])
        status = convention._get_return_status(builder, code, builder.load(raised))
        with builder.if_then(status.is_error, likely=False):
            convention.return_status_propagate(builder, status)
        return context.get_dummy_value()

    return types.void(types.int64, *kinds), generate


@intrinsic  # type: ignore[untyped-decorator]
def run_tile(typing: Any, entry: Any, block: Any, tile: Any, round: Any) -> Any:
    """Call the entry of a tile."""
    return _called_at(*ENTRY)


@intrinsic  # type: ignore[untyped-decorator]
def run_walk(
    typing: Any, walk: Any, entry: Any, block: Any, tiles: Any, round: Any, offsets: Any, waits: Any, lags: Any,
    done: Any, control: Any,
) -> Any:  # fmt: skip
    """Call a walk."""
    return _called_at(*WALK)


@intrinsic  # type: ignore[untyped-decorator]
def run_follow(typing: Any, follow: Any, rows: Any, registers: Any, table: Any, state: Any) -> Any:
    """Call what follows instructions."""
    return _called_at(*FOLLOW)


@intrinsic  # type: ignore[untyped-decorator]
def array_at(typing: Any, table: Any, row: Any, column: Any) -> Any:
    """The array of 64-bit integers that a table has the address and the length of, in two columns."""
    return _at(FLAGS, table)


@intrinsic  # type: ignore[untyped-decorator]
def fixed_at(typing: Any, table: Any, row: Any, column: Any) -> Any:
    """The same, of one that is not written."""
    return _at(FIXED, table)


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def matrix_at(typing: Any, table: Any, row: Any, column: Any, width: Any) -> Any:
    """The matrix of 64-bit integers that a table has the address and the number of rows of, with rows of a known
    length. It is not written."""
    length, generate = width.literal_value, _at(FIXED_ROWS, table)[1]
    return FIXED_ROWS(table, row, column, width), lambda *given: generate(*given, length)


def _at(found: types.Array, table: types.Array) -> Any:
    def generate(context: Any, builder: Any, sig: Any, args: Any, *lengths: int) -> Any:
        known = context.make_array(table)(context, builder, args[0])
        (_, columns), (row, column) = cgutils.unpack_tuple(builder, known.shape), args[1:3]
        place = builder.gep(known.data, [builder.add(builder.mul(row, columns), column)])
        fields = _Fields(context, builder, builder.ptrtoint(place, I64))
        start, length = fields.next(I64), fields.next(I64)
        widths = [I64(one) for one in lengths]
        strides = [I64(SLOT * prod(lengths[k:])) for k in range(found.ndim)]
        return fields.array(found, start, [length, *widths], strides)

    return found(table, types.int64, types.int64), generate


@intrinsic  # type: ignore[untyped-decorator]
def loaded(typing: Any, place: Any) -> Any:
    """The 64-bit integer at an address."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.load(builder.inttoptr(args[0], I64.as_pointer()))

    return types.int64(types.int64), generate


@intrinsic  # type: ignore[untyped-decorator]
def loaded_byte(typing: Any, place: Any) -> Any:
    """The byte at an address, from 0 to 255."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        found = builder.load(builder.inttoptr(args[0], ir.IntType(8).as_pointer()))
        return builder.zext(found, I64)

    return types.int64(types.int64), generate


@intrinsic  # type: ignore[untyped-decorator]
def as_float(typing: Any, bits: Any) -> Any:
    """The float with these bits."""
    return types.float64(types.int64), lambda _, builder, sig, args: builder.bitcast(args[0], ir.DoubleType())


@intrinsic  # type: ignore[untyped-decorator]
def as_bits(typing: Any, value: Any) -> Any:
    """The bits of a float."""
    return types.int64(types.float64), lambda _, builder, sig, args: builder.bitcast(args[0], I64)


@intrinsic  # type: ignore[untyped-decorator]
def single_bits(typing: Any, value: Any) -> Any:
    """The bits of a float as one of 32 bits."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.zext(builder.bitcast(builder.fptrunc(args[0], ir.FloatType()), ir.IntType(32)), I64)

    return types.int64(types.float64), generate


@intrinsic  # type: ignore[untyped-decorator]
def is_past_product(typing: Any, one: Any, other: Any) -> Any:
    """Whether the product of two integers has more than 64 bits."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.extract_value(builder.smul_with_overflow(*args), 1)

    return types.boolean(types.int64, types.int64), generate


@intrinsic  # type: ignore[untyped-decorator]
def store(typing: Any, place: Any, value: Any) -> Any:
    """Put a 64-bit integer at an address."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        builder.store(args[1], builder.inttoptr(args[0], I64.as_pointer()))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


@intrinsic  # type: ignore[untyped-decorator]
def store_byte(typing: Any, place: Any, value: Any) -> Any:
    """Put the lowest byte of an integer at an address."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        byte = ir.IntType(8)
        builder.store(builder.trunc(args[1], byte), builder.inttoptr(args[0], byte.as_pointer()))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


@intrinsic  # type: ignore[untyped-decorator]
def address(typing: Any, array: Any) -> Any:
    """The address of the first element of an array."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.ptrtoint(context.make_array(array)(context, builder, args[0]).data, I64)

    return types.int64(array), generate


# ---------------------------------------------------------------- called


class Packer:
    """Packs the arguments of a tile after its number and the round, which have these Numba types. `pack` is the
    walker's, which reads where arrays lie from NumPy's own records of them (`NDARRAY`): a call packs all that it is
    given, and each property that Python asks an array for takes as long as a short loop."""

    def __init__(self, kinds: Sequence[types.Type], pack: Callable[..., int]) -> None:
        self._arrays = [_expected(kind) if isinstance(kind, types.Array) else None for kind in kinds]
        self._complex = [isinstance(kind, types.Complex) for kind in kinds]
        self._forms = [struct.Struct("=" + _format(kind)) for kind in kinds]
        self._places = [0, *accumulate(form.size for form in self._forms)]
        self._pack, self._size = pack, self._places[-1] // SLOT
        known = [(-1, 0) if one is None else (one[1], one[0].itemsize * one[2]) for one in self._arrays]
        self._known = np.array(
            [(place // SLOT, *own) for place, own in zip(self._places, known, strict=False)], np.int64
        )

    def block(self, values: Sequence[Any]) -> NDArray[np.int64]:
        """A block of these arguments, of which None are put later. TypeError as of `pack`."""
        found = np.zeros(self._size, np.int64)
        self.pack(found, values)
        return found

    def pack(self, block: NDArray[np.int64], values: Sequence[Any]) -> None:
        """Put these arguments into a block, but for those that are None. TypeError for an array of another dtype, rank
        or layout than was compiled for."""
        records = np.zeros(len(values), np.int64)
        for position, (value, wanted) in enumerate(zip(values, self._arrays, strict=True)):
            if value is None:
                pass
            elif wanted is None:
                self.put(block, position, value)
            elif value.dtype is wanted[0] or _check(value, wanted):
                records[position] = id(value)
        wrong = self._pack(records, self._known, block)
        if wrong >= 0:
            _check(values[wrong], self._arrays[wrong])
            raise AssertionError(f"argument {wrong} of a kernel is not contiguous")

    def put(self, block: Any, position: int, value: Any) -> None:
        """Put a scalar into a block. OverflowError for an integer that its slot does not hold."""
        form, place = self._forms[position], self._places[position]
        if self._complex[position]:
            form.pack_into(block, place, value.real, value.imag)
        else:
            try:
                form.pack_into(block, place, value)
            except struct.error as error:
                raise OverflowError(str(error)) from None


Expected = tuple[np.dtype[Any], int, bool]
"""The dtype and the rank of an array, and whether it is contiguous."""


def _check(value: Any, wanted: Expected | None) -> bool:
    """Whether it is such an array: TypeError where it is not."""
    assert wanted is not None
    if value.dtype != wanted[0] or value.ndim != wanted[1] or (wanted[2] and not value.flags.c_contiguous):
        raise TypeError(f"a kernel for arrays {wanted} is given one of {value.dtype} and {value.shape}")
    return True


def _expected(kind: types.Array) -> Expected:
    return as_dtype(kind.dtype), kind.ndim, kind.layout == "C"


def _format(kind: types.Type) -> str:
    if isinstance(kind, types.Array):
        return "q" * (1 + 2 * kind.ndim)
    dtype = np.dtype(str(kind)) if not isinstance(kind, types.Boolean) else np.dtype(bool)
    return FORMATS.get(dtype.kind) or FORMATS[f"{dtype.kind}{dtype.itemsize}"]
