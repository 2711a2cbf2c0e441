"""What planning needs to know of loops before it knows sizes: dependences, legal strategies, better orders."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from orion.analysis.analyse_nest import candidates_of
from orion.analysis.analyses import Analyses, Analysis
from orion.analysis.one_loop import (
    AnalysedLoop,
    AsWritten,
    InBand,
    InTimeTiles,
    NewOrder,
    Origin,
    OutsideBands,
    is_once,
    origin_of,
)
from orion.cost.caches import USUAL, Caches
from orion.cost.placement import ArrayUse
from orion.cost.strides import JUMP, cannot_gain
from orion.cost.worth import depth_of, work_of, work_of_statements
from orion.dependence.access import Access, LoopDependences
from orion.dependence.bounds import bounds_checks
from orion.dependence.model import Model, model_loop, own_space
from orion.dependence.references import collect_references
from orion.dependence.region import Statement
from orion.dependence.scalars import scalar_roles
from orion.dependence.study import Study, study_loop
from orion.ir.nodes import For, If, Stmt, Walked, While, children, walk
from orion.ir.program import LoopNest, OfFilling, OfNewOrder, OfStatements, Program
from orion.ir.types import Types
from orion.passes.between import is_split
from orion.passes.split import open_outer_loop
from orion.plan.plan import Verdict
from orion.plan.variants import ALL, Allowed, Changed, Variant
from orion.plan.verdicts import verdicts
from orion.reasons import Hint, Reason, ReasonKind
from orion.rewrites.copy_in.apply import with_copies_before
from orion.rewrites.reorder.apply import Outlined, Rewritten, rewrite_loop, rewrite_sweeps
from orion.rewrites.reorder.bands import Band
from orion.rewrites.stored_sums.apply import with_stored_sums
from orion.sets.maps import Maps
from orion.typing.infer import with_made

MANY = 1000
"""More loops around one another than there are anywhere."""


def variants_of(
    program: Program, types: Types, caches: Caches = USUAL, allowed: Allowed = ALL, seen: Seen | None = None
) -> tuple[Variant, ...]:
    """The variants of a program, in the order in which they are tried: with all changes that are `allowed`, with fewer
    of them for sizes at which those do not pay, and last as the source has it. `seen` keeps what is found of loops."""
    seen = seen or Seen()
    found: list[Variant] = []
    left: Allowed | None = allowed
    while left is not None:
        variant, plain, left = _variant(program, types, caches, left, seen)
        found += [variant] if plain is None or left is not None else [variant, plain]
    return tuple(found)


def _variant(
    program: Program, types: Types, caches: Caches, allowed: Allowed, seen: Seen
) -> tuple[Variant, Variant | None, Allowed | None]:
    """The program with its loops as they are best, that with its loops as the source has them where these are others,
    and with which changes it is looked at next.

    Where a nest is serial as a whole but its outer loop can be taken as a serial loop around planned ones, and one of
    those is parallel, that is done. The tiles of new orders are made for `caches`.
    """
    number, source = 0, program
    loops: list[AnalysedLoop] = []
    written: list[AnalysedLoop] = []
    judged: list[Verdict] = []
    changed: list[Changed] = []
    outlined: list[Outlined] = []
    analyses, maps = seen.analyses, seen.analyses.maps
    while number < len(program.nests):
        first = seen.look(program, number, types)
        loop = first.loop
        judged += first.verdicts
        written.append(replace(loop, nest=source.nests[len(written)]))
        better = _better(program, first, types, analyses, caches, allowed)
        if allowed.renames:
            better = _with_copies(program, loop, types, analyses, better, apart=allowed.apart)
        loop = replace(loop, capped=tuple(_capped(loop, (*first.given_up, *maps.given_up()))))
        written[-1] = replace(written[-1], capped=loop.capped)
        if better is None:
            loops.append(loop)
            number += 1
            continue
        around = depth_of(program, number)
        program, found, rest = better[0], [*better[1]], better[2]
        outlined += rest
        types = with_made(types, program.function)
        if origin_of(found[0]) is None:  # opened, as the loop as a whole is not known to be parallel
            capped = (_against_stronger(reason, found[0]) for reason in loop.capped)
            found[0] = replace(found[0], capped=(*capped, *found[0].capped))
        changed.append(_changed(first, found, around, apart=allowed.apart))
        loops += found
        number += len(found)
    plain = Variant(source, tuple(written), tuple(judged)) if changed else None
    found_all = Variant(program, tuple(loops), tuple(judged), tuple(changed), tuple(outlined))
    return found_all, plain, _fewer_changes(changed, loops, allowed)


@dataclass(slots=True)
class _First:
    """What is found of a loop before anything is changed: `opened` is what `_opened` gives for it, once it is known.
    `has_other`: it is taken apart although another order was found."""

    program: Program
    analysis: Analysis
    verdicts: tuple[Verdict, ...]
    given_up: tuple[str, ...]
    opened: tuple[Better | None, ...] = ()
    has_other: bool = False

    @property
    def loop(self) -> AnalysedLoop:
        return self.analysis.loop

    @property
    def study(self) -> Study | None:
        return self.analysis.study


@dataclass(slots=True)
class Seen:
    """What was found of loops, by the identity of their program and their number."""

    analyses: Analyses = field(default_factory=Analyses)
    found: dict[tuple[int, int], _First] = field(default_factory=dict)

    def look(self, program: Program, number: int, types: Types) -> _First:
        key = id(program), number  # `_First` keeps the program
        if key not in self.found:
            found, maps = self.analyses.of(program, number, types), self.analyses.maps
            loop = found.loop
            judged = verdicts(loop.nest, loop.analysis, found.study, types, found.live_after, maps)
            self.found[key] = _First(program, found, judged, (*found.given_up, *maps.given_up()))
        return self.found[key]


def _changed(first: _First, found: Sequence[AnalysedLoop], around: int, *, apart: bool) -> Changed:
    """That loops were found to stand for one."""
    number = first.loop.nest.number
    is_taken_apart = is_once(first.loop.nest) or any(is_once(part.nest) for part in found)
    is_swept, has_other = any(isinstance(part.form, InTimeTiles) for part in found), apart and first.has_other
    numbers = range(number, number + len(found))
    return Changed(numbers, around, work_of(first.study), is_taken_apart, is_swept, has_other)


def _fewer_changes(changed: Sequence[Changed], loops: Sequence[AnalysedLoop], allowed: Allowed) -> Allowed | None:
    """What the program is analysed with for sizes at which these changes do not pay; None where it then runs as
    written."""
    fewer = replace(allowed, sweeps=False)
    nests = [loops[number].nest for one in changed for number in one.numbers]
    if any(one.is_swept for one in changed):
        return fewer
    if any(nest.renamed for nest in nests) and not all(
        nest.renamed or isinstance(nest.form, OfFilling) for nest in nests
    ):
        return replace(fewer, renames=False)
    if len({one.is_taken_apart for one in changed}) == 2 or any(one.has_other for one in changed):
        return replace(fewer, apart=False)
    return None


Better = tuple[Program, list[AnalysedLoop], list[Outlined]]
"""A program with a loop replaced by others, those loops, and what is still to be made of them."""


def _better(
    program: Program, first: _First, types: Types, analyses: Analyses, caches: Caches, allowed: Allowed
) -> Better | None:
    """The program with a loop opened or in another order, and its loops, where that is better than the loop as it is.

    Loops without tiles that wait, in a serial one, are preferred to a new order of the whole, if nothing else is in it.
    """
    loop, study, number = first.loop, first.study, first.loop.nest.number
    if is_once(loop.nest):
        return _opened(program, number, types, analyses) if allowed.apart else None
    if not first.opened:
        first.opened = (None if loop.candidates else _opened(program, number, types, analyses, plainly=True),)
    (opened,) = first.opened
    if opened is not None and all(_is_simple(inner) for inner in opened[1]):
        return (_swept(program, loop, study, types, analyses.maps, caches) if allowed.sweeps else None) or opened
    is_fine = bool(loop.candidates) or (opened is not None and all(inner.candidates for inner in opened[1]))
    rewritten = _rewritten(program, loop, study, types, analyses.maps, caches, must_gain=is_fine)
    better = opened if rewritten is None or _loses_vectors(rewritten, study) else rewritten
    if not allowed.apart or (better is not None and _depth_on_one_worker(better) < 2):
        return better  # what one worker runs is a loop at most
    other = None if loop.candidates else _opened(program, number, types, analyses)
    if better is None:
        return other
    first.has_other = other is not None and _depth_on_one_worker(other) < _depth_on_one_worker(better)
    return other if first.has_other else better


def _loses_vectors(better: Better, study: Study | None) -> bool:
    """Whether a new order only has tiles that wait, where the innermost loops as written are run in vectors: inside of
    such tiles one iteration follows another, which no two workers make up for."""
    shared = [loop for loop in better[1] if loop.candidates]
    works = work_of(study)
    depth = max((len(one.variables) for one in works), default=0)
    are_vectors = all(one.is_vector for one in works if len(one.variables) == depth)
    return are_vectors and not any(_is_simple(loop) for loop in shared)


def _depth_on_one_worker(better: Better) -> int:
    """How many loops stand around what one worker runs, at most: with branches and `while`s around loops in it more
    than any other, as nothing is known of those. 0 where all is shared out."""
    program, loops, _ = better
    alone = [loop.nest for loop in loops if is_once(loop.nest) or not _may_be_shared(loop)]
    nodes = [node for nest in alone for part in nest.body for node in walk(part)]
    if any(isinstance(node, If | While) and is_split(node) for node in nodes):
        return MANY
    own = [0 if is_once(nest) or isinstance(nest.form, OfNewOrder) else len(nest.dims) for nest in alone]
    depths = [dims + max(map(_depth, nest.body)) for dims, nest in zip(own, alone, strict=True)]
    around = [depth_of(program, nest.number) for nest in alone]
    return max((depth + outer for depth, outer in zip(depths, around, strict=True)), default=0)


def _depth(statement: Stmt) -> int:
    """How many loops stand around one another in a statement."""
    below = max((_depth(part) for part in children(statement) if isinstance(part, Walked)), default=0)
    return below + isinstance(statement, For | While)


def _with_copies(
    program: Program, loop: AnalysedLoop, types: Types, analyses: Analyses, better: Better | None, *, apart: bool
) -> Better | None:
    """What is better than a loop as it is: with copies made before it, or before loops in it that are serial by
    themselves where it is opened."""
    if better is None:
        return _renamed(program, loop, types, analyses)
    serial = _count_serial(better)
    if serial and not any(origin_of(inner) for inner in better[1]):
        for plainly in (True, False)[: 1 + apart]:
            other = _opened(program, loop.nest.number, types, analyses, plainly=plainly, renames=True)
            if other is not None:
                return other if _count_serial(other) < serial else better
    return better


def _count_serial(better: Better) -> int:
    """How many loops of the source, other than statements that run once, are serial."""
    return sum(not loop.candidates and not is_once(loop.nest) for loop in better[1])


def _renamed(program: Program, loop: AnalysedLoop, types: Types, analyses: Analyses) -> Better | None:
    """The program with copies made before a serial loop, or one in it where that is opened, so that it is parallel."""
    if loop.candidates or is_once(loop.nest) or "copy_in" in program.function.without:
        return None
    changed = with_copies_before(program, loop.nest.number, types, loop.analysis)
    if changed is None:
        return _opened(program, loop.nest.number, types, analyses, plainly=True, renames=True)
    types = with_made(types, changed.function)
    last = loop.nest.number + len(changed.nests) - len(program.nests)
    found = [analyses.of(changed, number, types).loop for number in range(loop.nest.number, last + 1)]
    return (changed, found, []) if found[-1].candidates else None


def _capped(loop: AnalysedLoop, given_up: Iterable[str]) -> Iterator[Reason]:
    """What was not found out of a loop that is serial, or has tiles that wait, because it would have taken too long."""
    if _is_simple(loop):
        return
    for what in given_up:
        message = f"it would take too long: {what}"
        yield _against_stronger(Reason(ReasonKind.BLOCKS, "ORN109", message, (loop.nest.span,), Hint.LIMIT), loop)


def _against_stronger(reason: Reason, loop: AnalysedLoop) -> Reason:
    """What keeps a loop serial as what it is of a loop that is parallel, but by no strong strategy."""
    if not loop.candidates or reason.kind is ReasonKind.RULES_OUT:
        return reason
    return replace(reason, kind=ReasonKind.RULES_OUT, message=f"not a stronger one: {reason.message}")


def _is_simple(loop: AnalysedLoop) -> bool:
    """Whether a loop is parallel without tiles that wait for each other."""
    return any(not candidate.time for candidate in loop.candidates)


def _rewritten(
    program: Program,
    loop: AnalysedLoop,
    study: Study | None,
    types: Types,
    maps: Maps,
    caches: Caches,
    must_gain: bool,
) -> Better | None:
    """The program with a nest of ranges in a better order, and its new loops: where one of those is parallel and, if
    the nest is parallel without it (`must_gain`), the new order is faster on one worker too."""
    if loop.analysis.private or "reorder" in program.function.without:
        return None  # a new order may mix what iterations have in arrays of their own
    if must_gain and loop.analysis.scalars.choices:
        return None  # in a new order one worker would go through all that they are taken from
    if must_gain and study is not None and _is_simple(loop) and cannot_gain(study.region):
        return None
    found = None if study is None else rewrite_loop(program, study, types, maps, caches)
    nest = loop.nest
    first = study
    if study is not None and must_gain and (found is None or not _is_faster(found)):
        study, found = _with_stored_sums(program, nest.number, types, maps, caches) or (study, found)
    if study is None or found is None or (must_gain and not _is_faster(found)):
        return None
    checks = bounds_checks(program, nest.number, types, _model(loop))
    origin = Origin(nest, loop.analysis, checks, found.dependences, found.order, study.region.statements)
    nests = found.program.nests[found.first :]
    loops = [
        _analyse_rewritten(new, band, types, origin, study, live, maps)
        for new, band, live in zip(nests, found.bands, found.live, strict=False)
    ]
    if study is not first:
        loops = [replace(new, rewrites=("stored_sums", *new.rewrites)) for new in loops]
    outlined = [] if found.outlined is None else [found.outlined]
    return (found.program, loops, outlined) if any(new.candidates for new in loops) else None


def _swept(
    program: Program, loop: AnalysedLoop, study: Study | None, types: Types, maps: Maps, caches: Caches
) -> Better | None:
    """The program with a serial loop around others in tiles of rounds and space, and its new loop."""
    is_out = loop.analysis.private or "time_tiles" in program.function.without
    found = None if study is None or is_out else rewrite_sweeps(program, study, types, maps, caches)
    if study is None or found is None:
        return None
    checks = bounds_checks(program, loop.nest.number, types, _model(loop))
    origin = Origin(loop.nest, loop.analysis, checks, found.dependences, found.order, study.region.statements)
    nest = found.program.nests[found.first]
    new = _analyse_rewritten(nest, found.bands[0], types, origin, study, found.live[0], maps)
    return (found.program, [new], []) if new.candidates else None


def _model(loop: AnalysedLoop) -> Model:
    assert isinstance(loop.form, AsWritten)
    return loop.form.model


def _with_stored_sums(
    program: Program, number: int, types: Types, maps: Maps, caches: Caches
) -> tuple[Study, Rewritten] | None:
    """A nest with its sums kept in array elements, where its innermost loops then no longer jump through memory."""
    is_out = "stored_sums" in program.function.without
    summed = None if is_out else with_stored_sums(program, number, types)
    study = None if summed is None else study_loop(summed, number, types, model_loop(summed, number, types), maps)
    found = None if summed is None or study is None else rewrite_loop(summed, study, types, maps, caches)
    return (study, found) if study and found and found.trips[1] < JUMP <= found.trips[0] else None


def _is_faster(found: Rewritten) -> bool:
    """Whether a new order is better than a parallel loop as written: its innermost loops go through memory in smaller
    steps, several of their chains of dependent trips are run at a time, or elements stay in registers for several trips
    of the loops around them."""
    gains = any(band is not None and (band.in_lockstep or band.jammed) for band in found.bands)
    return gains or found.trips[1] < found.trips[0]


def _analyse_rewritten(
    nest: LoopNest,
    band: Band | None,
    types: Types,
    origin: Origin,
    study: Study,
    live: frozenset[str],
    maps: Maps,
) -> AnalysedLoop:
    """A loop of a new order: what is known of its band, and of the statements in it, stands for an analysis of its
    text."""
    scalars = scalar_roles(nest, types, live)
    domain = band.domain if band else own_space(nest, types).text()
    analysis = LoopDependences(domain, (), band.dependences if band else (), scalars, ())
    candidates = candidates_of(nest, analysis, maps) if band else []
    if band and band.sweeps:  # blocks of space are shared out, those of rounds follow one another
        candidates = [one for one in candidates if (one.space, one.time) == (1, (0,))]
    touched: dict[str, bool] = {}
    for access in collect_references(nest, types) if band is None else _accesses_of(nest, band, study):
        touched[access.array] = touched.get(access.array, False) or access.is_write
    uses = tuple(ArrayUse(array, (), is_written) for array, is_written in touched.items())
    told = work_of_statements(study, _statements_of(nest, band, study))
    form: NewOrder = OutsideBands(origin, told) if band is None else InBand(origin, told, band.places)
    if band and band.sweeps:
        form = InTimeTiles(origin, told, band.places, band.sweeps)
    return AnalysedLoop(
        nest=nest,
        form=form,
        analysis=analysis,
        candidates=tuple(candidates),
        uses=uses,
        rounds_overlap=False,
        work=(),
        summed=None,
        capped=(),
        round_ns=0.0,
        rewrites=tuple(_rewrites_of(band)),
    )


def _rewrites_of(band: Band | None) -> Iterator[str]:
    """The names of the rewrites that made a loop of a new order."""
    if band is None or not band.sweeps:
        yield "reorder"
    if band is not None:
        yield from ("tile",) * bool(band.cache_tiles)
        yield from ("lockstep",) * band.in_lockstep
        yield from ("jam",) * (bool(band.jammed) and not band.in_lockstep)
        yield from ("time_tiles",) * (band.sweeps is not None)


def _statements_of(nest: LoopNest, band: Band | None, study: Study) -> Iterator[Statement]:
    """The statements of the source that a loop of a new order runs."""
    if band is not None:
        names = set(re.findall(r"\b(\w+)\[", band.places))
        yield from (statement for statement in study.region.statements if statement.name in names)
        return
    spans = {node.span for part in nest.body for node in walk(part)}
    yield from (statement for statement in study.region.statements if statement.body[0].span in spans)


def _accesses_of(nest: LoopNest, band: Band, study: Study) -> Iterator[Access]:
    """The accesses to arrays of the statements in a band."""
    for statement in _statements_of(nest, band, study):
        yield from (access for access in statement.accesses if access.array not in study.region.scalars)


def _opened(
    program: Program, number: int, types: Types, analyses: Analyses, *, plainly: bool = False, renames: bool = False
) -> Better | None:
    """The program with the outer loop of a serial nest made a `Repeat` (statements that run once: taken apart), and the
    loops that it then has inside, if that makes one of them parallel. `renames`: with copies made before them, too.

    The loops in statements that run once are always found: so the plan has something to say of them.
    """
    without, before = program.function.without, len(program.nests)
    plainly = plainly or "distribute" in without
    if ("distribute" if is_once(program.nests[number]) else "peel") in without:
        return None
    opened = open_outer_loop(program, number, analyses.opened(program.nests[number], types), plainly=plainly)
    if opened is None:
        return None
    apart, program = is_once(program.nests[number]), opened
    found: list[AnalysedLoop] = []
    last = number + len(program.nests) - before + 1
    while number < last:
        analysis = analyses.of(program, number, types)
        loop = replace(analysis.loop, capped=tuple(_capped(analysis.loop, analysis.given_up)))
        is_fine = _may_be_shared(loop) and not is_once(loop.nest)
        changed = None if is_fine else _opened(program, number, types, analyses, plainly=plainly, renames=renames)
        changed = changed or (_renamed(program, loop, types, analyses) if renames and not is_fine else None)
        if changed is None:
            found.append(loop)
            number += 1
            continue
        program, inner, _ = changed
        types = with_made(types, program.function)
        found += inner
        last += len(inner) - 1
        number += len(inner)
    return (program, found, []) if apart or is_shared_out(found) else None


def is_shared_out(loops: Iterable[AnalysedLoop]) -> bool:
    """Whether any of the loops is parallel, perhaps with copies of arrays: statements that one worker runs, and the
    filling of new arrays, are no reason to meet."""
    return any(_may_be_shared(loop) and not isinstance(loop.nest.form, OfStatements | OfFilling) for loop in loops)


def _may_be_shared(loop: AnalysedLoop) -> bool:
    return bool(loop.candidates) or loop.summed is not None
