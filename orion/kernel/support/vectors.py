"""Rows of fixed length as values of Numba: what generated kernels load, compute with in registers, and store.

`Row(dtype, length)` is a struct of LLVM vectors as wide as the machine's registers, the last ones halved until they
fit (100 float32 in 512-bit registers: six of 16 lanes and one of 4). Every operation is written out once per vector,
so that its rounding never depends on how LLVM unrolls or vectorizes a loop: `*`, `+`, `-`, `/` round each element
once, `fma(a, b, c)` rounds a * b + c once (where the machine has such an instruction), and sums are taken in the
order that is stated there.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir
from numba import types
from numba.core import cgutils, config
from numba.core.codegen import get_host_cpu_features, initialize_llvm
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin, models, register_model

I32 = ir.IntType(32)
I64 = ir.IntType(64)
LINE = 64


ADD = """
define <16 x float> @add(<16 x float> %x, <16 x float> %y) {
  %z = fadd <16 x float> %x, %y
  ret <16 x float> %z
}
"""


def native_lanes() -> int:
    """How many float32 fit a vector register of the CPU that Numba compiles for: this one, or what its settings say.

    LLVM does not tell what the CPUs have that it knows by name, so it is seen in what it makes of an addition.
    """
    if config.CPU_NAME is None and config.CPU_FEATURES is None:
        features = llvm.get_host_cpu_features() if config.ENABLE_AVX else {}
        return 16 if features.get("avx512f") else 8 if features.get("avx") else 4
    initialize_llvm()
    cpu = config.CPU_NAME or llvm.get_host_cpu_name()
    features = get_host_cpu_features() if config.CPU_FEATURES is None else config.CPU_FEATURES
    machine = llvm.Target.from_default_triple().create_target_machine(cpu=cpu, features=features)
    code = machine.emit_assembly(llvm.parse_assembly(ADD))
    return 16 if "zmm" in code else 8 if "ymm" in code else 4


LANES = native_lanes()


class Row(types.Type):  # type: ignore[misc]
    """The type of a row of `length` float32 or float64 held in registers."""

    def __init__(self, dtype: types.Float, length: int) -> None:
        self.dtype = dtype
        self.length = length
        super().__init__(name=f"Row({dtype}, {length})")

    @property
    def element(self) -> ir.Type:
        return ir.FloatType() if self.dtype == types.float32 else ir.DoubleType()

    @property
    def itemsize(self) -> int:
        return int(self.dtype.bitwidth) // 8

    def chunks(self) -> Iterator[tuple[int, int]]:
        """First element and number of lanes of each vector; the same for both dtypes, so that rows can be converted."""
        at, lanes = 0, LANES
        while at < self.length:
            while lanes > self.length - at:
                lanes //= 2
            yield at, lanes
            at += lanes


@register_model(Row)
class RowModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, row: Row) -> None:
        vectors = [ir.VectorType(row.element, lanes) for _, lanes in row.chunks()]
        super().__init__(manager, row, ir.LiteralStructType(vectors))


# ------------------------------------------------------------ taking rows apart and together


def split(builder: Any, kind: Any, value: Any, row: Row) -> list[Any]:
    """The vectors of a row, or those of a scalar repeated to the shape of `row`."""
    if isinstance(kind, Row):
        return [builder.extract_value(value, k) for k, _ in enumerate(row.chunks())]
    return [_repeat(builder, value, lanes) for _, lanes in row.chunks()]


def join(context: Any, builder: Any, row: Row, vectors: list[Any]) -> Any:
    value = ir.Constant(context.get_value_type(row), ir.Undefined)
    for k, vector in enumerate(vectors):
        value = builder.insert_value(value, vector, k)
    return value


def _repeat(builder: Any, value: Any, lanes: int) -> Any:
    kind = ir.VectorType(value.type, lanes)
    undefined = ir.Constant(kind, ir.Undefined)
    first = builder.insert_element(undefined, value, I32(0))
    return builder.shuffle_vector(first, undefined, ir.Constant(ir.VectorType(I32, lanes), [0] * lanes))


def _suffix(kind: ir.Type) -> str:
    """The name of a type in names of LLVM intrinsics, as `v16f32`."""
    element = kind.element if isinstance(kind, ir.VectorType) else kind
    bits = "f32" if isinstance(element, ir.FloatType) else "f64"
    return f"v{kind.count}{bits}" if isinstance(kind, ir.VectorType) else bits


def call(builder: Any, name: str, arguments: list[Any]) -> Any:
    """Call LLVM's intrinsic `name`, whose arguments and result all have one type."""
    kind = arguments[0].type
    function_type = ir.FunctionType(kind, [kind] * len(arguments))
    function = cgutils.get_or_insert_function(builder.module, function_type, f"llvm.{name}.{_suffix(kind)}")
    return builder.call(function, arguments)


def common_row(*kinds: Any) -> Row | None:
    """The row type among the operands, if they go together: rows of one type, scalars of its dtype."""
    rows = {kind for kind in kinds if isinstance(kind, Row)}
    if len(rows) != 1:
        return None
    row: Row = rows.pop()
    return row if all(isinstance(kind, Row) or kind == row.dtype for kind in kinds) else None


def elementwise(name: str, emit: Callable[[Any, list[Any]], Any]) -> Callable[..., Any]:
    """The code generator of an operation that works lane by lane on rows and scalars."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        row = sig.return_type
        if not isinstance(row, Row):
            return emit(builder, list(args))
        operands = [split(builder, kind, value, row) for kind, value in zip(sig.args, args, strict=True)]
        return join(context, builder, row, [emit(builder, list(lane)) for lane in zip(*operands, strict=True)])

    generate.__name__ = name
    return generate


# ------------------------------------------------------------ operators


def _define_operator(function: Any, instruction: str) -> None:
    class Template(AbstractTemplate):  # type: ignore[misc]
        def generic(self, args: Any, kws: Any) -> Any:
            row = common_row(*args)
            return None if row is None or kws else signature(row, *args)

    infer_global(function)(Template)
    generate = elementwise(instruction, lambda builder, operands: getattr(builder, instruction)(*operands))
    for kinds in ((Row, Row), (types.Float, Row), (Row, types.Float)):
        lower_builtin(function, *kinds)(generate)


for _function, _instruction in (
    (operator.add, "fadd"), (operator.sub, "fsub"), (operator.mul, "fmul"), (operator.truediv, "fdiv"),
):  # fmt: skip
    _define_operator(_function, _instruction)


@infer_global(operator.neg)
class _Negate(AbstractTemplate):  # type: ignore[misc]
    def generic(self, args: Any, kws: Any) -> Any:
        return signature(args[0], args[0]) if isinstance(args[0], Row) else None


lower_builtin(operator.neg, Row)(elementwise("fneg", lambda builder, operands: builder.fneg(*operands)))


def _lane_function(name: str, llvm_name: str, count: int) -> Any:
    """A function of rows, or of scalars, that calls LLVM's intrinsic `llvm_name` for each vector, or takes the first
    operand where that comparison holds or it is NaN, and the second elsewhere: so zeros are as NumPy has them."""

    def of_vectors(builder: Any, operands: list[Any]) -> Any:
        if llvm_name not in "<>":
            return call(builder, llvm_name, operands)
        first, second = operands
        is_nan = builder.fcmp_unordered("uno", first, first)
        return builder.select(builder.or_(builder.fcmp_ordered(llvm_name, first, second), is_nan), first, second)

    generate = elementwise(name, of_vectors)

    def typer(*kinds: Any) -> Any:
        found = kinds[0] if isinstance(kinds[0], types.Float) and len(set(kinds)) == 1 else common_row(*kinds)
        return None if found is None else (found(*kinds), generate)

    return function_of(count, name, typer)


def function_of(count: int, name: str, typer: Callable[..., Any]) -> Any:
    """A function of so many arguments, from whose types `typer` makes its signature and its code generator."""

    def one(typing: Any, a: Any) -> Any:
        return typer(a)

    def two(typing: Any, a: Any, b: Any) -> Any:
        return typer(a, b)

    def three(typing: Any, a: Any, b: Any, c: Any) -> Any:
        return typer(a, b, c)

    function = {1: one, 2: two, 3: three}[count]
    function.__name__ = function.__qualname__ = name
    return intrinsic(function)


fma = _lane_function("fma", "fmuladd", 3)
row_sqrt = _lane_function("row_sqrt", "sqrt", 1)
row_abs = _lane_function("row_abs", "fabs", 1)
row_exp = _lane_function("row_exp", "exp", 1)
row_log = _lane_function("row_log", "log", 1)
row_floor = _lane_function("row_floor", "floor", 1)
row_ceil = _lane_function("row_ceil", "ceil", 1)
row_minimum = _lane_function("row_minimum", "<", 2)
row_maximum = _lane_function("row_maximum", ">", 2)


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def spread(typing: Any, value: Any, length: Any) -> Any:
    """A row of `length` elements that are all `value`."""
    row = Row(types.unliteral(value), length.literal_value)

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return join(context, builder, row, split(builder, row.dtype, args[0], row))

    return row(row.dtype, length), generate


def _conversion(name: str, dtype: types.Float, instruction: str) -> Any:
    def convert(value: Any) -> Any:
        if isinstance(value, types.Float):

            def generate_one(context: Any, builder: Any, sig: Any, args: Any) -> Any:
                return getattr(builder, instruction)(args[0], context.get_value_type(dtype))

            return dtype(value), generate_one
        row = Row(dtype, value.length)

        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            vectors = split(builder, value, args[0], value)
            kinds = [ir.VectorType(row.element, lanes) for _, lanes in row.chunks()]
            cast = getattr(builder, instruction)
            return join(context, builder, row, [cast(v, kind) for v, kind in zip(vectors, kinds, strict=True)])

        return row(value), generate

    return function_of(1, name, convert)


row_as_float32 = _conversion("row_as_float32", types.float32, "fptrunc")
row_as_float64 = _conversion("row_as_float64", types.float64, "fpext")


# ------------------------------------------------------------ memory


def _address(context: Any, builder: Any, kind: Any, array: Any, at: Any) -> Any:
    return builder.gep(context.make_array(kind)(context, builder, array).data, [at], inbounds=True)


def _vector_address(builder: Any, pointer: Any, row: Row, at: int, lanes: int) -> Any:
    target = ir.VectorType(row.element, lanes).as_pointer()
    return builder.bitcast(builder.gep(pointer, [I64(at)], inbounds=True), target)


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def load_row(typing: Any, array: Any, at: Any, length: Any) -> Any:
    """The row of `length` elements that starts `at` elements into the storage of the C-contiguous `array`."""
    row = Row(array.dtype, length.literal_value)

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        pointer = _address(context, builder, array, args[0], args[1])
        addresses = [_vector_address(builder, pointer, row, first, lanes) for first, lanes in row.chunks()]
        return join(context, builder, row, [builder.load(a, align=row.itemsize) for a in addresses])

    return row(array, types.int64, length), generate


@intrinsic  # type: ignore[untyped-decorator]
def store_row(typing: Any, array: Any, at: Any, value: Any) -> Any:
    """Write a row to where `load_row(array, at, …)` reads it."""
    if not isinstance(value, Row) or array.dtype != value.dtype:
        return None

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        pointer = _address(context, builder, array, args[0], args[1])
        for (first, lanes), vector in zip(value.chunks(), split(builder, value, args[2], value), strict=True):
            builder.store(vector, _vector_address(builder, pointer, value, first, lanes), align=value.itemsize)
        return context.get_dummy_value()

    return types.void(array, types.int64, value), generate


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def prefetch_row(typing: Any, array: Any, at: Any, length: Any) -> Any:
    """Ask for the cache lines of a row that will be written soon."""
    size = length.literal_value * (array.dtype.bitwidth // 8)

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        pointer = builder.bitcast(_address(context, builder, array, args[0], args[1]), ir.IntType(8).as_pointer())
        function_type = ir.FunctionType(ir.VoidType(), [pointer.type, I32, I32, I32])
        function = cgutils.get_or_insert_function(builder.module, function_type, "llvm.prefetch.p0")
        for offset in range(0, size, LINE):
            builder.call(function, [builder.gep(pointer, [I64(offset)]), I32(1), I32(3), I32(1)])
        return context.get_dummy_value()

    return types.void(array, types.int64, length), generate
