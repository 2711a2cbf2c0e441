"""The hand-written pieces of `vector_kernel.py`: one SGD update, a prefetch, and flags between threads."""

from __future__ import annotations

from typing import Any

from llvmlite import binding, ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

LANES = 16 if binding.get_host_cpu_features().get("avx512f") else 8
LINE = 64  # bytes of a cache line
FLAG_STRIDE = 8  # int64s between two threads' flags: a cache line each
FLOAT, INT32, INT64 = ir.FloatType(), ir.IntType(32), ir.IntType(64)
FAST = ("fast",)  # lets a product and a sum become one instruction, and the sum of a vector take any order


def _row(context: Any, builder: Any, kind: Any, array: Any, offset: Any) -> Any:
    data = context.make_array(kind)(context, builder, array).data
    return builder.gep(data, [offset], inbounds=True)


def chunk_widths(rank: int) -> list[int]:
    """The widths of the vectors that make up a row: whole ones, then halves of what is left (100 = 6 x 16 + 4)."""
    widths = [LANES] * (rank // LANES)
    rest, width = rank % LANES, LANES
    while rest:
        width //= 2
        if rest >= width:
            widths.append(width)
            rest -= width
    return widths


def _chunks(builder: Any, row: Any, rank: int) -> list[Any]:
    """The addresses of a row's vectors."""
    addresses, offset = [], 0
    for width in chunk_widths(rank):
        vector = ir.VectorType(FLOAT, width)
        addresses.append(builder.bitcast(builder.gep(row, [INT64(offset)]), vector.as_pointer()))
        offset += width
    return addresses


def _load(builder: Any, addresses: list[Any]) -> list[Any]:
    return [builder.load(at, align=4 * at.type.pointee.count) for at in addresses]


def _splat(builder: Any, scalar: Any, vector: Any) -> Any:
    undefined = ir.Constant(vector, ir.Undefined)
    first = builder.insert_element(undefined, scalar, INT32(0))
    lanes = ir.Constant(ir.VectorType(INT32, vector.count), [0] * vector.count)
    return builder.shuffle_vector(first, undefined, lanes)


def _sum(builder: Any, vector: Any) -> Any:
    signature = ir.FunctionType(FLOAT, [FLOAT, vector.type])
    name = f"llvm.vector.reduce.fadd.v{vector.type.count}f32"
    reduce = cgutils.get_or_insert_function(builder.module, signature, name)
    return builder.call(reduce, [FLOAT(-0.0), vector], fastmath=FAST)


def _dot(builder: Any, left: list[Any], right: list[Any]) -> Any:
    """The dot product of two rows: one running sum per width of vector."""
    sums: dict[int, Any] = {}
    for a, b in zip(left, right, strict=True):
        product = builder.fmul(a, b, flags=FAST)
        before = sums.get(a.type.count)
        sums[a.type.count] = product if before is None else builder.fadd(before, product, flags=FAST)
    total, *others = [_sum(builder, vector) for vector in sums.values()]
    for other in others:
        total = builder.fadd(total, other, flags=FAST)
    return total


@intrinsic(prefer_literal=True)
def update(typing: Any, W: Any, H: Any, row: Any, column: Any, star: Any, step: Any, decay: Any, rank: Any) -> Any:
    """One update of the rows that start at `row` in flat W and `column` in flat H; decay = 1 - step * reg."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        w_at = _chunks(builder, _row(context, builder, W, args[0], args[2]), rank.literal_value)
        h_at = _chunks(builder, _row(context, builder, H, args[1], args[3]), rank.literal_value)
        w, h = _load(builder, w_at), _load(builder, h_at)
        error = builder.fsub(args[4], _dot(builder, w, h), flags=FAST)
        gain = builder.fmul(args[5], error, flags=FAST)
        for mine, other, at in [*zip(w, h, w_at, strict=True), *zip(h, w, h_at, strict=True)]:
            kept = builder.fmul(mine, _splat(builder, args[6], mine.type), flags=FAST)
            gained = builder.fmul(_splat(builder, gain, mine.type), other, flags=FAST)
            builder.store(builder.fadd(kept, gained, flags=FAST), at, align=4 * mine.type.count)
        return context.get_dummy_value()

    return types.void(W, H, types.uint64, types.uint64, *[types.float32] * 3, rank), generate


@intrinsic(prefer_literal=True)
def prefetch(typing: Any, array: Any, offset: Any, rank: Any) -> Any:
    """Ask for the cache lines of the row that starts at `offset`, to write to."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        row = builder.bitcast(_row(context, builder, array, *args[:2]), ir.IntType(8).as_pointer())
        signature = ir.FunctionType(ir.VoidType(), [row.type, INT32, INT32, INT32])
        function = cgutils.get_or_insert_function(builder.module, signature, "llvm.prefetch.p0")
        for byte in range(0, 4 * rank.literal_value, LINE):
            builder.call(function, [builder.gep(row, [INT64(byte)]), INT32(1), INT32(3), INT32(1)])
        return context.get_dummy_value()

    return types.void(array, types.uint64, rank), generate


@intrinsic
def publish(typing: Any, flags: Any, thread: Any, value: Any) -> Any:
    """Set a thread's flag after everything that it wrote before."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        at = _row(context, builder, flags, args[0], builder.mul(args[1], INT64(FLAG_STRIDE)))
        builder.store_atomic(args[2], at, ordering="release", align=8)
        return context.get_dummy_value()

    return types.void(flags, types.int64, types.int64), generate


@intrinsic
def read(typing: Any, flags: Any, thread: Any) -> Any:
    """A thread's flag; what that thread wrote before it is seen from here on."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        at = _row(context, builder, flags, args[0], builder.mul(args[1], INT64(FLAG_STRIDE)))
        return builder.load_atomic(at, ordering="acquire", align=8)

    return types.int64(flags, types.int64), generate


@intrinsic
def give_way(typing: Any) -> Any:
    """Let another thread run on this core."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        signature = ir.FunctionType(INT32, [])
        builder.call(cgutils.get_or_insert_function(builder.module, signature, "sched_yield"), [])
        return context.get_dummy_value()

    return types.void(), generate
