"""What generated kernels call besides arithmetic: flags between workers, checked subscripts, and how they are
compiled."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import config, njit
from numba.core import cgutils, types
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.extending import intrinsic, overload, register_jitable

from orion.kernel.build.cache import in_words, tell_not_kept
from orion.kernel.build.checked import keep_checked
from orion.kernel.build.entries import TileCompiler
from orion.kernel.calling import ABORT, ALARM, ENDED, EVERYONE, FLAG_STRIDE, GO, OUT_OF_BOUNDS, RAISED, end_mark

SPINS_BEFORE_YIELD = 100
CLAIMED = -1
USING_SVML = bool(getattr(config, "USING_SVML", False))
I1, I32, I64 = ir.IntType(1), ir.IntType(32), ir.IntType(64)


# ------------------------------------------------------------ how kernels are compiled


class NoAlias(CompilerBase):  # type: ignore[misc]
    """Numba's compiler for parts of tiles, told the same of their arguments as that for tiles (`TileCompiler`), and
    without a way in."""

    def define_pipelines(self) -> list[Any]:
        self.state.flags.noalias = True
        self.state.flags.no_cpython_wrapper = self.state.flags.no_cfunc_wrapper = True
        return [DefaultPassBuilder.define_nopython_pipeline(self.state)]


def kept(**settings: Any) -> Callable[[Callable[..., Any]], Any]:
    """`njit` with these settings, with the machine code on disk where Numba can have a folder for it."""

    def decorate(function: Callable[..., Any]) -> Any:
        try:
            return keep_checked(njit(cache=True, **settings)(function))
        except (OSError, RuntimeError) as error:
            tell_not_kept(in_words(error))
            return njit(**settings)(function)

    return decorate


tile_function = kept(nogil=True, error_model="numpy", pipeline_class=TileCompiler)
part_function = njit(nogil=True, error_model="numpy", pipeline_class=NoAlias)
walk_function = kept(nogil=True, error_model="numpy", no_cfunc_wrapper=True)
support_function = njit(nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
helper_function = njit(nogil=True, error_model="numpy", boundscheck=True)


@intrinsic  # type: ignore[untyped-decorator]
def seldom(typing: Any) -> Any:
    """Nothing, in a branch that is taken seldom: with it LLVM keeps the branch, which the processor foresees, instead
    of a choice between values that each trip has to wait for."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        made = builder.asm(ir.FunctionType(ir.VoidType(), []), "", "", [], side_effect=True)
        made.attributes.add("readnone")  # what is in memory stays known
        made.attributes.add("nounwind")
        return context.get_dummy_value()

    return types.void(), generate


def branch() -> None:
    """The same in a branch that calls a function such as exp, unless Numba has that for vectors (SVML): LLVM would make
    the calls for all lanes, one by one. Nothing in plain Python."""


@overload(branch)  # type: ignore[untyped-decorator]
def _branch() -> Callable[[], None]:
    def kept_apart() -> None:
        seldom()

    def joined() -> None:
        pass

    return joined if USING_SVML else kept_apart


# ------------------------------------------------------------ atomic access to int64 arrays


def _element(context: Any, builder: Any, kind: Any, array: Any, index: Any) -> Any:
    return builder.gep(context.make_array(kind)(context, builder, array).data, [index], inbounds=True)


@intrinsic  # type: ignore[untyped-decorator]
def load_acquire(typing: Any, array: Any, index: Any) -> Any:
    """`array[index]`; what was written before the store that wrote it is seen from here on."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.load_atomic(_element(context, builder, array, *args), ordering="acquire", align=8)

    return types.int64(array, types.int64), generate


@intrinsic  # type: ignore[untyped-decorator]
def store_release(typing: Any, array: Any, index: Any, value: Any) -> Any:
    """`array[index] = value`, after everything written before."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        address = _element(context, builder, array, *args[:2])
        builder.store_atomic(args[2], address, ordering="release", align=8)
        return context.get_dummy_value()

    return types.void(array, types.int64, types.int64), generate


@intrinsic  # type: ignore[untyped-decorator]
def compare_exchange(typing: Any, array: Any, index: Any, expected: Any, value: Any) -> Any:
    """Set `array[index]` to `value` if it is `expected`; whether it was."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        address = _element(context, builder, array, *args[:2])
        result = builder.cmpxchg(address, args[2], args[3], "acq_rel", "acquire")
        return builder.extract_value(result, 1)

    return types.boolean(array, types.int64, types.int64, types.int64), generate


@intrinsic  # type: ignore[untyped-decorator]
def pause(typing: Any) -> Any:
    """Tell the core that this is a loop that waits."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        function_type = ir.FunctionType(ir.VoidType(), [])
        if "x86" in builder.module.triple or "i686" in builder.module.triple:
            builder.call(cgutils.get_or_insert_function(builder.module, function_type, "llvm.x86.sse2.pause"), [])
        else:
            builder.asm(function_type, "yield", "", [], True)
        return context.get_dummy_value()

    return types.void(), generate


@intrinsic  # type: ignore[untyped-decorator]
def give_way(typing: Any) -> Any:
    """Let another thread run on this core."""
    name = "SwitchToThread" if sys.platform == "win32" else "sched_yield"

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        function_type = ir.FunctionType(I32, [])
        builder.call(cgutils.get_or_insert_function(builder.module, function_type, name), [])
        return context.get_dummy_value()

    return types.void(), generate


@register_jitable  # type: ignore[untyped-decorator]
def rested(spins: int, most: int = SPINS_BEFORE_YIELD) -> int:  # pragma: no cover - compiled
    """Wait a little before looking again, after `most` times without the core. How often it was done by then."""
    if spins + 1 < most:
        pause()
    else:
        give_way()
    return spins + 1


# ------------------------------------------------------------ looking up


@intrinsic  # type: ignore[untyped-decorator]
def is_alarmed(typing: Any, control: Any) -> Any:
    """Whether there is anything to look at: one load and one branch, in loops that are to be fast."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        address = _element(context, builder, control, args[0], I64(ALARM))
        is_set = builder.icmp_signed("!=", builder.load_atomic(address, ordering="monotonic", align=8), I64(0))
        return _expected(builder, is_set, I1(0))

    return types.boolean(control), generate


@intrinsic  # type: ignore[untyped-decorator]
def likely(typing: Any, condition: Any) -> Any:
    """A condition that nearly always holds: what follows then is laid out as the straight way."""
    return types.boolean(types.boolean), lambda _, builder, sig, args: _expected(builder, args[0], I1(1))


def _expected(builder: Any, condition: Any, value: Any) -> Any:
    expect = cgutils.get_or_insert_function(builder.module, ir.FunctionType(I1, [I1, I1]), "llvm.expect.i1")
    return builder.call(expect, [condition, value])


@intrinsic  # type: ignore[untyped-decorator]
def this_thread(typing: Any) -> Any:
    """The identity of this thread, as Python has it."""
    kind = I32 if sys.platform == "win32" else I64

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        name = "PyThread_get_thread_ident"
        function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(kind, []), name)
        found = builder.call(function, [])
        return found if kind is I64 else builder.zext(found, I64)

    return types.int64(), generate


@intrinsic  # type: ignore[untyped-decorator]
def handler_raises(typing: Any) -> Any:
    """Have Python run the handlers of signals that have come; whether one raises. Its exception is then pending in this
    thread. Only the main thread runs handlers; any thread of Python's may ask."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        def function(name: str, result: Any, arguments: list[Any]) -> Any:
            return cgutils.get_or_insert_function(builder.module, ir.FunctionType(result, arguments), name)

        state = builder.call(function("PyGILState_Ensure", I32, []), [])
        found = builder.call(function("PyErr_CheckSignals", I32, []), [])
        builder.call(function("PyGILState_Release", ir.VoidType(), [I32]), [state])
        return builder.icmp_signed("!=", found, I32(0))

    return types.boolean(), generate


@intrinsic  # type: ignore[untyped-decorator]
def end_raising(typing: Any, is_raised: Any) -> Any:
    """End the function that this is called in with the exception that is pending, where there is one."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        with builder.if_then(args[0], likely=False):
            context.call_conv.return_exc(builder)
        return context.get_dummy_value()

    return types.void(types.boolean), generate


@register_jitable  # type: ignore[untyped-decorator]
def is_left(control: Any) -> bool:  # pragma: no cover - compiled
    """Whether the loop is to be left."""
    return bool(load_acquire(control, 0) != GO)


@support_function  # type: ignore[untyped-decorator]
def is_to_leave(control: Any) -> bool:  # pragma: no cover - compiled
    """Whether the loop is to be left, where there is an alarm; the thread that it is for handles signals first."""
    alarm = load_acquire(control, ALARM)
    if alarm == this_thread() and compare_exchange(control, ALARM, alarm, 0) and handler_raises():
        control[RAISED] = alarm
        compare_exchange(control, 0, GO, ABORT)
        store_release(control, ALARM, EVERYONE)
    return bool(load_acquire(control, 0) != GO)


@register_jitable  # type: ignore[untyped-decorator]
def must_leave(control: Any) -> bool:  # pragma: no cover - compiled
    """The same at little cost where there is no alarm."""
    return bool(is_left(control) or (is_alarmed(control) and is_to_leave(control)))


@register_jitable  # type: ignore[untyped-decorator]
def has_raised(control: Any) -> bool:  # pragma: no cover - compiled
    """Whether a signal handler raised in this thread."""
    return bool(control[RAISED] == this_thread())


# ------------------------------------------------------------ what the generated source calls


@register_jitable  # type: ignore[untyped-decorator]
def is_ready(
    tile: int, round: int, wait_offsets: Any, waits: Any, lags: Any, done: Any, control: Any
) -> bool:  # pragma: no cover - compiled
    """Wait until all that the tile waits for is done; False where the loop is to be left instead."""
    if is_alarmed(control) and is_to_leave(control):
        return False
    for k in range(wait_offsets[tile], wait_offsets[tile + 1]):
        flag = waits[k] * FLAG_STRIDE
        needed = round + 1 - lags[k]
        spins = 0
        while load_acquire(done, flag) < needed:
            if must_leave(control):
                return False
            spins = rested(spins)
    return not is_left(control)


@register_jitable  # type: ignore[untyped-decorator]
def finish(tile: int, round: int, done: Any) -> None:  # pragma: no cover - compiled
    """Tell the others that the tile is done."""
    store_release(done, tile * FLAG_STRIDE, round + 1)


mark_of = register_jitable(end_mark)


@register_jitable  # type: ignore[untyped-decorator]
def is_after_end(tile: int, round: int, control: Any) -> bool:  # pragma: no cover - compiled
    """Whether a tile before this one has ended the loop."""
    return bool(load_acquire(control, ENDED) > mark_of(tile, round))


@support_function  # type: ignore[untyped-decorator]
def tell_end(tile: int, round: int, control: Any) -> None:  # pragma: no cover - compiled
    """Note that a tile ends the loop for those after it, unless one before it has done so."""
    found = mark_of(tile, round)
    last = load_acquire(control, ENDED)
    while last < found and not compare_exchange(control, ENDED, last, found):
        last = load_acquire(control, ENDED)


@support_function  # type: ignore[untyped-decorator]
def tell_outside(at: int, extent: int, axis: int, site: int, control: Any) -> None:  # pragma: no cover - compiled
    """Note which subscript leaves its array. By itself, not part of `checked`: loops took 16 times as long with it."""
    if compare_exchange(control, 0, GO, CLAIMED):
        control[1] = site
        control[2] = at
        control[3] = extent
        control[4] = axis
        store_release(control, 0, OUT_OF_BOUNDS)
        store_release(control, ALARM, EVERYONE)


@register_jitable  # type: ignore[untyped-decorator]
def with_elements(array: Any, site: int) -> Any:  # pragma: no cover - compiled
    """An array as it is; ends the walk where it has no elements, as NumPy's quantiles do. `site` says where that is."""
    if array.size == 0:
        raise IndexError(site)
    return array


@intrinsic  # type: ignore[untyped-decorator]
def is_inside(typing: Any, at: Any, extent: Any) -> Any:
    """Whether `at` is from 0 to `extent` - 1: one comparison of numbers without signs."""
    return types.boolean(types.int64, types.int64), lambda _, builder, sig, args: builder.icmp_unsigned("<", *args)


@register_jitable  # type: ignore[untyped-decorator]
def checked(at: int, extent: int, axis: int, site: int, control: Any) -> int:  # pragma: no cover - compiled
    """The subscript `at` counted from the start of an axis, as Python does; ends the walk where it leaves the axis. One
    comparison tells of both ends; gathers of doubles took a sixth longer where negative ones were looked at first."""
    if is_inside(at, extent):
        return at
    if at < -extent or at >= extent:
        tell_outside(at, extent, axis, site, control)
        raise IndexError("a subscript leaves its array")
    return at + extent


@register_jitable  # type: ignore[untyped-decorator]
def checked_narrow(at: int, most: int, extent: int, axis: int, site: int, control: Any) -> int:  # pragma: no cover
    """The same for a subscript from -`most` to `most` - 1. An axis that is long enough for all of these needs no check,
    which is the same in all trips of a loop."""
    wrapped = at + extent if at < 0 else at
    if extent < most and (wrapped < 0 or wrapped >= extent):
        tell_outside(at, extent, axis, site, control)
        raise IndexError("a subscript leaves its array")
    return wrapped


@intrinsic  # type: ignore[untyped-decorator]
def add_to_sum(typing: Any, total: Any, term: Any) -> Any:
    """`total + term` of a sum that may be reassociated, so that a loop over the terms can be vectorized."""
    return total(total, total), lambda _, builder, sig, args: builder.fadd(*args, flags=("reassoc",))


@register_jitable  # type: ignore[untyped-decorator]
def dot_of_rows(left: Any, right: Any) -> Any:  # pragma: no cover - compiled
    """The dot product of two rows in memory, reassociated."""
    total = left.dtype.type(0)
    for k in range(_common_length(left, right)):
        total = add_to_sum(total, left[k] * right[k])
    return total


@register_jitable  # type: ignore[untyped-decorator]
def dot_of_rows_in_order(left: Any, right: Any) -> Any:  # pragma: no cover - compiled
    """The dot product of two rows in memory, from first to last."""
    total = left.dtype.type(0)
    for k in range(_common_length(left, right)):
        total += left[k] * right[k]
    return total


@register_jitable  # type: ignore[untyped-decorator]
def _common_length(left: Any, right: Any) -> int:  # pragma: no cover - compiled
    if left.shape[0] != right.shape[0]:
        raise ValueError("the rows of a product differ in length")
    return int(left.shape[0])
