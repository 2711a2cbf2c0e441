"""Where scalars that a loop's iterations hand on are scans, and two passes over blocks take less time than one."""

from __future__ import annotations

from collections.abc import Sequence

from orion.analysis.one_loop import AnalysedLoop, AsWritten, is_single, may_be_shared
from orion.cost.worth import body_ns
from orion.dataclass import replace
from orion.dependence.scalars import carries
from orion.ir.assigned import assigned_names
from orion.ir.constants import constant_value
from orion.ir.exposed import exposed_scalars
from orion.ir.function import Function, written_names
from orion.ir.nodes import Assign, Bind, Break, Continue, For, Range, Return, Subscript, Tuple, While, every, holds
from orion.ir.program import OfSource
from orion.passes.view_names import written_names as written_arrays
from orion.reasons import Reason
from orion.rewrites.scans.in_arrays import WithScalars, stored_last, with_scalars
from orion.rewrites.scans.steps import Scan, Step, kept_for, scans_of
from orion.source import Span
from orion.typing.expression_types import Typing

DTYPES = {"float64", "int64"}

CHAIN_NS = {Step.SUM: 0.85, Step.LINEAR: 1.65, Step.EXTREME: 0.55, Step.NEW: 0.3}
"""How long a float takes to get from one iteration to the next: 3 cycles an addition, 6 to 7 with a product, 2 an
extreme (Zen 4, 3.7 GHz)."""

FREE = 0.5
"""The part of the time of operations that is left where none waits for the one before."""

MEMORY_NS = 0.8
"""What an iteration must take at least. Loops that do less wait for memory, which two passes go through twice."""

GAIN = 1.5
"""How many times as long as two workers one must take."""


def find(loop: AnalysedLoop, typing: Typing) -> frozenset[Span]:
    """The place of a loop that is serial, if what its iterations hand on are scans."""
    if not _may_be_scanned(loop):
        return frozenset()
    changed, names = _handed_on_by(loop, typing)
    return frozenset({changed.loop.span}) if scanned(changed, names, loop.nest.function) else frozenset()


def not_worthwhile(loop: AnalysedLoop, typing: Typing) -> tuple[Reason, ...]:
    """Why a loop runs as it is written that nothing but scans keeps serial, where two passes would take longer."""
    if not _may_be_scanned(loop):
        return ()
    changed, names = _handed_on_by(loop, typing)
    others = {one.array for one in loop.analysis.dependences} - names - {one.begins.base.name for one in changed.moved}
    scans = legal_scans(changed, names, loop.nest.function)
    if others or loop.analysis.reasons or not scans or pays(changed.loop, scans, changed.typing):
        return ()
    message = f"{in_blocks_in_words(sorted(names), loop.nest.function)}, as an iteration does so little"
    return (Reason.of("ORN120", message, loop.nest.span),)


def in_blocks_in_words(names: Sequence[str], function: Function) -> str:
    """Return the words for scans that cost too much, but for the reason; scalars that nobody wrote are no names."""
    written = written_names(function)
    told = " and ".join([f"`{name}`" for name in names if name in written] or ["values"])
    return f"blocks of iterations that hand {told} on would take longer than the loop as written"


def _may_be_scanned(loop: AnalysedLoop) -> bool:
    nest = loop.nest
    if not isinstance(loop.form, AsWritten) or not isinstance(nest.form, OfSource) or nest.elements is not None:
        return False
    return nest.ordered and not may_be_shared(loop) and not is_single(nest)


def _handed_on_by(loop: AnalysedLoop, typing: Typing) -> tuple[WithScalars, set[str]]:
    """A loop with scalars for what it hands on in arrays, and all scalars that it hands on."""
    changed = with_scalars(loop.nest.loops[0], typing, loop.nest.function)
    names = {name for name, _ in loop.analysis.scalars.carried} | {one.scalar for one in changed.moved}
    return changed, names


def handed_on(loop: For, function: Function) -> set[str]:
    """The scalars that iterations of a loop get from those before."""
    return {name for name in assigned_names(loop.body) if carries(name, loop.body, function)}


def scanned(changed: WithScalars, names: set[str], function: Function) -> tuple[Scan, ...]:
    """The scans that scalars of a loop are; none where they are not, arrays cannot keep them, or it does not pay."""
    scans = legal_scans(changed, names, function)
    return scans if scans and pays(changed.loop, scans, changed.typing) else ()


def legal_scans(changed: WithScalars, names: set[str], function: Function) -> tuple[Scan, ...]:
    """The scans that scalars of a loop are; none where they are not, or arrays cannot keep them."""
    loop, typing = changed.loop, changed.typing
    space, body = loop.space, loop.body
    if not isinstance(space, Range) or constant_value(space.step) not in (1, -1):
        return ()
    if holds((Bind, Break, Continue, Return, While), *body) or any(map(_gives_both, every(Assign, *body))):
        return ()
    if not names or names != handed_on(loop, function) or space.var in assigned_names(body):
        return ()
    written = written_arrays(replace(function, body=body), typing)
    scans = scans_of(body, names, written - stored_last(loop, typing))
    if not scans or not all(is_kept(scan, typing, function) for scan in scans):
        return ()
    used = exposed_scalars(kept_for(body, names), {space.var})  # `j` of a loop that only stores is not computed
    return scans if assigned_names(body).intersection(used) <= names else ()


def _gives_both(statement: Assign) -> bool:
    """Whether a statement gives elements and scalars their values, which the first pass cannot take apart."""
    items = statement.target.items if isinstance(statement.target, Tuple) else ()
    return len({isinstance(item, Subscript) for item in items}) > 1


def is_kept(scan: Scan, typing: Typing, function: Function) -> bool:
    """Whether arrays can keep what blocks do with a scalar, and it may be rounded in another order."""
    kind, dtype = typing.name(scan.name), dtype_of(scan, typing)
    if dtype == "bool" and not kind.rank:
        return scan.steps == {Step.NEW}
    if kind.rank or dtype not in DTYPES or (scan.is_linear and dtype != "float64"):
        return False
    return function.reassociates or not (scan.is_added_to and dtype == "float64")


def dtype_of(scan: Scan, typing: Typing) -> str:
    """The dtype of a scalar that is handed on."""
    return typing.name(scan.name).dtype


def iteration_ns(loop: For, scans: tuple[Scan, ...], typing: Typing) -> float:
    """The predicted time of an iteration as written: that of its operations, or that for which the next one waits."""
    if holds(For, *loop.body):
        return body_ns(loop.body, {}, {})
    floats = [scan for scan in scans if dtype_of(scan, typing) == "float64"]
    chain = max((sum(CHAIN_NS[one.step] for one in scan.changes) for scan in floats), default=0.0)
    return max(FREE * body_ns(loop.body, {}, {}), chain)


def pays(loop: For, scans: tuple[Scan, ...], typing: Typing) -> bool:
    """Whether two passes take less time than one on two workers."""
    first = body_ns(kept_for(loop.body, [scan.name for scan in scans]), {}, {})
    alone = iteration_ns(loop, scans, typing)
    return alone >= MEMORY_NS and FREE * (first + body_ns(loop.body, {}, {})) * GAIN <= 2 * alone


def is_rounded(scan: Scan, typing: Typing) -> bool:
    """Whether blocks are put together with rounding, so that one worker takes the same blocks as several."""
    return scan.is_added_to and dtype_of(scan, typing) == "float64"
