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
VECTOR = ir.VectorType(FLOAT, LANES)
FAST = ("fast",)  # lets a product and a sum become one instruction, and the sum of a vector take any order


def _row(context: Any, builder: Any, kind: Any, array: Any, offset: Any) -> Any:
    data = context.make_array(kind)(context, builder, array).data
    return builder.gep(data, [offset], inbounds=True)


def _chunks(builder: Any, row: Any, rank: int) -> list[Any]:
    """The addresses of a row's vectors; the last one reaches into the row's padding."""
    offsets = range(0, rank, LANES)
    return [builder.bitcast(builder.gep(row, [INT64(o)]), VECTOR.as_pointer()) for o in offsets]


def _splat(builder: Any, scalar: Any) -> Any:
    undefined = ir.Constant(VECTOR, ir.Undefined)
    first = builder.insert_element(undefined, scalar, INT32(0))
    return builder.shuffle_vector(first, undefined, ir.Constant(ir.VectorType(INT32, LANES), [0] * LANES))


def _sum(builder: Any, vector: Any) -> Any:
    signature = ir.FunctionType(FLOAT, [FLOAT, VECTOR])
    name = f"llvm.vector.reduce.fadd.v{LANES}f32"
    reduce = cgutils.get_or_insert_function(builder.module, signature, name)
    return builder.call(reduce, [FLOAT(-0.0), vector], fastmath=FAST)


@intrinsic(prefer_literal=True)
def update(typing: Any, W: Any, H: Any, row: Any, column: Any, star: Any, step: Any, decay: Any, rank: Any) -> Any:
    """One update of the rows that start at `row` in flat W and `column` in flat H; decay = 1 - step * reg."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        w_at = _chunks(builder, _row(context, builder, W, args[0], args[2]), rank.literal_value)
        h_at = _chunks(builder, _row(context, builder, H, args[1], args[3]), rank.literal_value)
        w = [builder.load(at, align=LINE) for at in w_at]
        h = [builder.load(at, align=LINE) for at in h_at]
        dot = builder.fmul(w[0], h[0], flags=FAST)
        for a, b in zip(w[1:], h[1:], strict=True):
            dot = builder.fadd(dot, builder.fmul(a, b, flags=FAST), flags=FAST)
        error = builder.fsub(args[4], _sum(builder, dot), flags=FAST)
        gain = _splat(builder, builder.fmul(args[5], error, flags=FAST))
        keep = _splat(builder, args[6])
        for mine, other, at in [*zip(w, h, w_at, strict=True), *zip(h, w, h_at, strict=True)]:
            kept = builder.fmul(mine, keep, flags=FAST)
            gained = builder.fmul(gain, other, flags=FAST)
            builder.store(builder.fadd(kept, gained, flags=FAST), at, align=LINE)
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
