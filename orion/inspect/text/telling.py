"""What there is to tell about a plan, in words and in order: the text and the notebook view show the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from orion.dataclass import dataclass, replace
from orion.inspect.text.conflicts import Conflict, ruled_out, sizing_reasons
from orion.inspect.text.parts import has_list
from orion.inspect.text.words import (
    bytes_in_words,
    choice_in_words,
    counted,
    in_written_names,
    lines_in_words,
    listed,
    percent,
    placement_in_words,
    shown_part,
    time_in_words,
)  # fmt: skip
from orion.ir.assigned import own_level
from orion.ir.function import InBlocks, Induction, Rows, Stands, written_names
from orion.ir.nodes import Break, For, every, names_in, walk
from orion.ir.printer import print_expr
from orion.ir.types import SparseType
from orion.plan.conditions import conditions_in_words
from orion.plan.deal import ByTimes
from orion.plan.explain import Told, in_turn, not_stronger
from orion.plan.plan import Fill, FunctionPlan, Inside, LoopPlan, Member, Reordered, Weighed
from orion.plan.shares import shares
from orion.plan.source_plans import has_values
from orion.reasons import Hint, Reason, ReasonKind
from orion.source import Span

NO_BREAK = "\u00a0"
"""A blank at which a line is not broken."""

NO_CONFLICTS = "none: no two iterations touch the same element with one of them writing it"
OR_LEAVE = (
    "; where computing it so takes longer, leave the loop as it is: several such loops, each on arrays of its own, can "
    "be shared out by a loop around them"
)
INSIDE = "it stands in statements that one worker runs"


def signature(plan: FunctionPlan) -> str:
    """The function with its parameters."""
    function = plan.program.function
    words = (f"{name}={value!r}" for name, value in function.words)
    return f"{function.name}({', '.join((*function.shown, *words))})"


def conditions(plan: FunctionPlan) -> list[str]:
    """What holds of the sizes and integers of the calls that are run so."""
    found = [*conditions_in_words(plan.program.function, dict(plan.types))]
    found += [f"{text} is inside its array" for text in plan.taken_inside]
    return [f"{condition}: looked at in each call; for others another plan is made" for condition in found]


def makes(plan: FunctionPlan) -> list[tuple[str, str, str]]:
    """The arrays that the function makes: name, dtype and shape, and where they live. Those whose names are in no
    source are told by the lines that they are made for."""
    found, written = [], written_names(plan.program.function)
    for one in (one for one in plan.local_arrays if one.name in written):
        shape = "" if one.shape is None else f" ({', '.join(map(str, one.shape))}), {bytes_in_words(one.nbytes)}"
        whose = "the caller gets it" if one.is_returned else "used again by the next call"
        found.append((one.name, f"{one.dtype}{shape}", f"in memory that all workers share; {whose}"))
    unnamed = sorted((one for one in plan.local_arrays if one.name not in written), key=lambda one: one.span.line)
    for line, group in groupby(unnamed, lambda one: one.span.line):
        arrays = list(group)
        sizes = [one.nbytes for one in arrays]
        total = "" if None in sizes else f", {bytes_in_words(sum(size for size in sizes if size is not None))}"
        whose = "the caller gets it" if any(one.is_returned for one in arrays) else "used again by the next call"
        found.append((f"line {line}", f"{counted(len(arrays), 'more array')}{total}", whose))
    return found


def shuffled(plan: FunctionPlan) -> list[tuple[str, str]]:
    """The arguments that were shuffled before, and what their last shuffle sent from share to share."""
    types = dict(plan.types)
    kinds = ("elements" if isinstance(types.get(name), SparseType) else "rows" for name, _ in plan.shuffled)
    return [(name, one.told(kind)) for (name, one), kind in zip(plan.shuffled, kinds, strict=True)]


def considered(plan: FunctionPlan) -> list[tuple[str, str, str]]:
    """Other ways to run the function that were not taken: what would be done, the predicted time, and why not. Without
    those that a loop gives the reason against."""
    said = {reason for loop in plan.loops for reason in loop.reasons}
    return [
        (one.name, time_in_words(one.nanoseconds), one.reason.told + one.reason.help)
        for one in plan.considered
        if one.reason not in said
    ]


def runs_on(loop: LoopPlan) -> list[str]:
    """On how many workers the loop runs, and why not on more: of a loop with several parts, each of them says so."""
    function = loop.nest.function
    found = [] if has_list(loop) else sizing_reasons(loop)
    reasons = [f"{in_written_names(one.message, one.code, function)} [{one.code}]{one.help}" for one in found]
    first = ", those with most work first" if isinstance(loop.tiles, Weighed) else ""
    taken = [f"they take tiles of each other that are not begun{first}"] if loop.is_dynamic and loop.runs_on > 1 else []
    return [
        counted(loop.runs_on, "worker"),
        *taken,
        *dealt(loop),
        *([INSIDE] if isinstance(loop.form, Inside) else []),
        *reasons,
    ]


def dealt(loop: LoopPlan) -> list[str]:
    """How many blocks each worker has, and why, where they have unequal shares by measured times."""
    deal = loop.deal
    if not isinstance(deal, ByTimes) or loop.space is None:
        return []
    dim = loop.nest.dims[loop.space]
    speeds = listed([f"{speed:.2g}" for speed in deal.speeds])
    blocks = f"{listed([str(count) for count in deal.blocks])} blocks of {dim}"
    return [f"unequal shares, {blocks}, since call {deal.since}: workers were measured at speeds of {speeds}"]


def reductions(loop: LoopPlan) -> list[str]:
    """The scalars and arrays that the iterations combine or take from one of them, and why they are no conflict."""
    scalars = loop.analysis.scalars
    order = "the written order" if loop.ordered else "the order of plan.serial_order()"
    lines = {one.name: one.span.line for one in loop.analysis.sums}
    written = written_names(loop.nest.function)
    told = [
        f"{copies.array}, by {copies.op} in line {lines[copies.array]}, whichever element it is: no conflict, "
        "each block adds to a copy, and they are combined at the end"
        for copies in loop.copies
    ]
    told += [
        f"{r.name}, by {r.op} in line {r.span.line}: no conflict, its parts are combined at the end"
        for r in scalars.reductions
        if r not in scalars.accumulations
    ]
    told += accumulations(loop)
    for choice in scalars.choices:
        if choice.op == "first":
            continue  # `exits` has it
        names = ", ".join(name for name in choice.names if name in written) or "what it leaves the loop with"
        told.append(f"{names}, in line {choice.span.line}: {choice_in_words(choice)}; no conflict, combined in {order}")
    return told


IN_TILES = "which is commutative, block by block in a fixed order"


def accumulations(loop: LoopPlan) -> list[str]:
    """The accumulators that the loop adds to."""
    function, added = loop.nest.function, {one.op for one in loop.analysis.scalars.accumulations}
    in_order = "in the order of the iterations" if loop.ordered else "in the order of plan.serial_order()"
    helpers = {one.name: one for one in function.helpers}
    told = []
    for one in function.accumulated:
        if one.op in added:
            span = helpers[one.combine].span
            own = f"`{one.written}` (line {span.line})"
            order = IN_TILES if one.is_commutative and loop.ordered else in_order
            told.append(
                f"{one.source}: combined over iterations by {own}, {order}: no conflict, blocks are combined at the end"
            )
    return told


def exits(loop: LoopPlan) -> list[str]:
    """What ends a loop early whose iterations after the end may run."""
    places = dict.fromkeys(f"the `{one.word}` in line {one.span.line}" for one in exits_of(loop))
    if not places:
        return []
    return [f"at {' or '.join(places)}: the first iteration that comes there counts, and what later ones do does not"]


def exits_of(loop: LoopPlan) -> tuple[Break, ...]:
    """The `break`s that end a loop whose iterations after the end may run."""
    return tuple(one for one in own_level(loop.nest.body) if isinstance(one, Break) and one.is_first)


def scans(loop: LoopPlan, plan: FunctionPlan) -> list[str]:
    """What iterations hand on in blocks, and what the passes over these cost that the loop as written has not."""
    told = []
    for one in scans_of(loop):
        names = ", ".join(one.names)
        how = (
            f"{_passes_before(loop, plan, one.length)}, find what each block begins with"
            if one.is_twice
            else f"in blocks of {one.length} iterations, as on several workers"
        )
        rounded = (
            "; sums are rounded in blocks, the same way on any number of workers (fastmath=False: as written, on one)"
        )
        told.append(f"{names}, handed on: {how}{rounded if one.is_rounded else ''}")
    return told


def _passes_before(loop: LoopPlan, plan: FunctionPlan, length: int) -> str:
    """The passes of a scan before the last one, with their shares of the work."""
    passes = [one for one in shares(plan) if isinstance(one.loop.form, Fill) and one.loop.nest.span == loop.nest.span]
    first, between = (
        percent(sum(one.part for one in passes if one.loop.is_parallel is is_first)) for is_first in (True, False)
    )
    return (
        f"a first pass over its blocks of {length:,} iterations ({first} of the work), and one from block to block on "
        f"one worker ({between})"
    )


def scans_of(loop: LoopPlan) -> tuple[InBlocks, ...]:
    """What is said of the `for`s of a loop that go through blocks of iterations which hand scalars on."""
    own = {node.index for node in every(For, loop.nest.loops[0])}
    return tuple(one for one in loop.nest.function.in_blocks if one.loop in own)


def inductions(loop: LoopPlan) -> list[str]:
    """The integers that are computed from loop variables, where the source increases them in each trip."""
    lines = {node.index: node.span.line for node in walk(loop.nest.loops[0]) if isinstance(node, For)}
    return [
        f"{i.name}, by {print_expr(i.step)} per trip of the `for` in line {lines[i.loop]}: computed from its variable"
        for i in inductions_of(loop)
    ]


def inductions_of(loop: LoopPlan) -> tuple[Induction, ...]:
    """The induction variables of the `for`s of a loop that the source has."""
    own, written = {node.index for node in every(For, loop.nest.loops[0])}, written_names(loop.nest.function)
    return tuple(one for one in loop.nest.function.inductions if one.loop in own and one.name in written)


def stands_of(loop: LoopPlan) -> tuple[Stands, ...]:
    """The names that stand for arrays of other names in the `for`s of a loop."""
    own = {node.index for node in every(For, loop.nest.loops[0])}
    found = {(one.name, one.array): one for one in loop.nest.function.stands if one.loop in own}
    return tuple(found.values())


def flattened(loop: LoopPlan) -> list[str]:
    """The flattened arrays of a loop, and how their subscripts are shown."""
    return [
        f"{one.array} is in rows of {' × '.join(map(print_expr, one.widths))} elements: "
        f"{one.written} in line {one.span.line} is {one.shown} here"
        for one in rows_of(loop)
    ]


def rows_of(loop: LoopPlan) -> tuple[Rows, ...]:
    """The flattened arrays that a loop touches."""
    used = names_in(loop.nest.loops[0])
    return tuple(one for one in loop.nest.function.rows if one.array in used)


def private_arrays(loop: LoopPlan) -> list[str]:
    """The arrays of which each tile has its own, or could have, and why what they hold is no conflict."""
    has = [
        f"{array.name}, written in line {array.span.line} before it is read: each iteration has its own, "
        "and that of the last one is kept"
        for array in loop.private_arrays
    ]
    written = written_names(loop.nest.function)
    firsts = {
        name: min(access.span for one in loop.dependences if one.array == name for access in (one.source, one.sink))
        for name in loop.may_be_private
        if name in written
    }
    could = [
        f"{name}, written in line {span.line} before it is read: each iteration could have its own, so that it is not "
        "in the way"
        for name, span in firsts.items()
    ]
    return [*has, *could]


def fused_with(loop: LoopPlan) -> list[str]:
    """With which neighbouring loops a loop is run as one, and what that saves, or why it is not."""
    not_fused = notes(loop, "fused")
    if not isinstance(loop.form, Member):
        return not_fused
    why = loop.form.fused_with
    others = f"the {'loop' if len(why.lines) == 1 else 'loops'} in {lines_in_words(why.lines)}"
    if not why.lines:
        others = "the other loop that its line runs as"
    arrays = [f"`{array}`" for array in why.arrays if array in written_names(loop.nest.function)]
    held = f"{listed(arrays) or 'what they share'} {'are' if len(arrays) > 1 else 'is'} still in the cache"
    saved = "" if why.saved is None else f": {bytes_in_words(why.saved)} go through memory once less"
    return [f"with {others}, iteration by iteration, so that {held} when used again{saved}", *not_fused]


def notes(loop: LoopPlan, label: str = "notes") -> list[str]:
    """The notes on a loop that stand beside a label."""
    found = (reason for reason in loop.reasons if reason.kind is ReasonKind.NOTE and reason.row.label == label)
    return [reason.told + reason.help for reason in found]


def copied_in(loop: LoopPlan, plan: FunctionPlan) -> list[str]:
    """The arrays of which a loop reads a copy that is made before it."""
    found = []
    for one in loop.nest.copied_in:
        size = next((made.nbytes for made in plan.local_arrays if made.name == one.copy), None)
        where = lines_in_words(read.span.line for read in one.reads)
        reads = listed(list(dict.fromkeys(print_expr(read).replace(" ", NO_BREAK) for read in one.reads)))
        amount = "" if size is None else f" ({bytes_in_words(size)})"
        found.append(f"reads of {one.array} see a copy made before the loop{amount}: {reads} in {where}")
    return found


def accesses_in_words(conflict: Conflict) -> str:
    """The accesses of a conflict with their lines, writes first; what stands in the same lines is said together."""
    reads, writes = dict(conflict.reads), dict(conflict.writes)
    everywhere = {*reads.values(), *writes.values()}
    where = f", in {lines_in_words(everywhere.pop())}" if len(everywhere) == 1 else ""
    together: dict[str, list[str]] = {}
    for text in dict.fromkeys([*writes, *reads]):
        done = [("written", writes.get(text)), ("read", reads.get(text))]
        if where:
            said = " and ".join(verb for verb, lines in done if lines)
        else:
            said = ", ".join(f"{verb} in {lines_in_words(lines)}" for verb, lines in done if lines)
        together.setdefault(said, []).append(text.replace(" ", NO_BREAK))
    separator = ", " if where else "; "
    return separator.join(f"{listed(texts)} {said}" for said, texts in together.items()) + where


def such_as(conflict: Conflict) -> str:
    """An example of two iterations, to be appended; empty where there is none."""
    return f", such as {conflict.example}" if conflict.example else ""


def why_not(loop: LoopPlan, conflicts: Sequence[Conflict]) -> list[tuple[str, str, Reason]]:
    """The strategies that a parallel loop cannot take: their names, what is said against them, and the first reason
    for that."""
    together: dict[tuple[str, str], list[tuple[str, Reason]]] = {}
    found = ruled_out(loop)
    if loop.parts:
        found = (*_ruled_out_now(loop), *(one for one in found if not one[1].is_about_a_pair))
    for strategy, reason in found:
        together.setdefault((_against(reason, conflicts), reason.code), []).append((strategy, reason))
    return [(_strategies([name for name, _ in all_of]), why, all_of[0][1]) for (why, _), all_of in together.items()]


def _or(names: Sequence[str]) -> str:
    return " or ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _strategies(names: Sequence[str]) -> str:
    """The names of strategies: "independent, or 1d along i or j"."""
    along = [name.removeprefix("1d along ") for name in names if name.startswith("1d along ")]
    others = [name for name in names if not name.startswith("1d along ")]
    return ", or ".join(filter(None, [", ".join(others), f"1d along {_or(along)}" if along else ""]))


def _ruled_out_now(loop: LoopPlan) -> Iterator[tuple[str, Reason]]:
    """The strategies that the new order of a loop does not allow its weakest part."""
    for part in loop.parts:
        if isinstance(part.form, Reordered) and part.strategy == loop.strategy:
            shown = shown_part(part)
            told = Told(shown.nest, dict(shown.known), has_values=has_values(part))
            reasons = in_turn(not_stronger(part.strategy, shown.dependences, told), part.nest.function)
            yield from ruled_out(replace(shown, reasons=reasons))
            return


def _against(reason: Reason, conflicts: Sequence[Conflict]) -> str:
    conflict = next((c for c in conflicts if set(reason.spans) <= set(c.spans)), None)
    if conflict is None:
        return reason.message.partition(": ")[2]
    return f"as {conflict.iterations} meet in {conflict.array}{such_as(conflict)}"


SHARED = "workers share memory: no array is sent"
SENT = "sent, one worker per node"


def data(loop: LoopPlan, plan: FunctionPlan) -> list[tuple[str, str, str]]:
    """Every array of the source, where it lives, and the bytes that one run sends: "" where no worker is on another
    node."""
    written = written_names(loop.nest.function)
    is_sent = has_sent(loop, plan)
    return [
        (p.array, placement_in_words(p, loop, is_sent), bytes_in_words(p.bytes_moved) if is_sent else "")
        for p in loop.placements
        if p.array in written
    ]


def has_sent(loop: LoopPlan, plan: FunctionPlan) -> bool:
    """Whether workers of a loop may have to send arrays to each other."""
    return plan.is_apart and loop.runs_on > 1


# ---------------------------------------------------------------- what blocks a serial loop


@dataclass(frozen=True, slots=True)
class Blocker:
    """One thing that keeps a loop serial: its code, what is said of it, the places, and what would help (said once)."""

    code: str
    said: tuple[str, ...]
    spans: tuple[Span, ...]
    hint: str


def lone_reasons(loop: LoopPlan) -> list[Reason]:
    """The reasons that keep a loop serial and are not about a pair of accesses."""
    return [reason for reason in loop.reasons if reason.kind is ReasonKind.BLOCKS and not reason.is_about_a_pair]


def but_for(loop: LoopPlan) -> str:
    """What to say of a serial loop that only anti dependences keep from being parallel; empty for any other.

    No iteration then needs what another one writes: one that reads from a copy made before the loop may run whenever.
    """
    pairs = loop.blocking
    others = [reason for reason in lone_reasons(loop) if reason.code != "ORN124"]
    if loop.is_parallel or not pairs or others or any(d.kind != "anti" or d.reason for d in pairs):
        return ""
    reads = dict.fromkeys(f"`{d.source.text}` in line {d.source.span.line}" for d in pairs)
    arrays = dict.fromkeys(f"`{d.array}`" for d in pairs)
    copy = "a copy" if len(arrays) == 1 else "copies"
    said = f"parallel but for {listed(list(reads))}, read before a later iteration writes it"
    is_too_costly = any(reason.code == "ORN124" for reason in loop.reasons)
    return said if is_too_costly else f"{said}: read from {copy} of {listed(list(arrays))} made before the loop"


def blockers(loop: LoopPlan, conflicts: Sequence[Conflict]) -> list[Blocker]:
    """What keeps the loop serial, in program order; what is not about a pair of accesses comes first, or last.

    Where `but_for` says what would help, it is not said again."""
    others = lone_reasons(loop)
    alone = [Blocker(reason.code, (reason.message,), reason.spans, reason.hint) for reason in others]
    found = [one for one, reason in zip(alone, others, strict=True) if not reason.row.last]
    last = [one for one in alone if one not in found]
    if any(reason.row.alone for reason in others):
        return [*found, *last]  # the dependences would allow a parallel plan
    is_told = bool(but_for(loop))
    for conflict in conflicts:
        hint = "" if is_told else _hint(conflict, loop)
        is_new = hint not in {blocker.hint for blocker in found}
        found.append(Blocker(conflict.reason.code, _said(conflict), conflict.spans, hint if is_new else ""))
    return [*found, *last]


def _said(conflict: Conflict) -> tuple[str, ...]:
    """What is said of a conflict: of a carried scalar its reason alone."""
    message = conflict.reason.message
    if conflict.is_scalar:
        return (message,)
    said = (f"{conflict.array}: {conflict.iterations}{such_as(conflict)}", accesses_in_words(conflict))
    return (*said, message) if message else said


def _hint(conflict: Conflict, loop: LoopPlan) -> str:
    """What would help: maybe nothing where blocks that hand its scalars on would take longer than one worker does."""
    if conflict.reason.code == "ORN104" and any(one.code == "ORN120" for one in sizing_reasons(loop)):
        return conflict.reason.hint + OR_LEAVE
    is_needed = any(dependence.kind == "flow" and dependence.exact for dependence in conflict.dependences)
    is_plain = conflict.reason.code == "ORN101" and conflict.reason.hint != Hint.STEP
    return Hint.NEEDED if is_needed and is_plain else conflict.reason.hint
