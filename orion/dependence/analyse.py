"""The dependence stage: a loop nest in, all that can make its iterations depend on each other out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from orion.dependence.access import Access, LoopDependences, ScalarRoles
from orion.dependence.choices import directions
from orion.dependence.conflicts import find_dependences
from orion.dependence.model import Model, Space, access_relation, model_loop
from orion.dependence.repeated import repeated_reasons
from orion.dependence.scalars import scalar_roles
from orion.dependence.study import Study, dependences_of
from orion.ir.assigned import assigned_places
from orion.ir.assumed import held_by
from orion.ir.exposed import exposed_scalars
from orion.ir.nodes import Break, Choose, Compare, For, If, Node, Return, Stmt, Var, While, every, names_in
from orion.ir.program import LoopNest, Program
from orion.ir.types import ArrayType, Types
from orion.reasons import Hint, Reason, ReasonKind
from orion.sets.maps import Maps
from orion.sets.names import isl_name, parameter_list


def analyse_loop(
    program: Program,
    number: int,
    types: Types,
    study: Study | None = None,
    model: Model | None = None,
    maps: Maps | None = None,
) -> LoopDependences:
    """The dependences of planned loop `number` of a program, from a study of its statements where there is one, and
    from its model where that is known already. What is made in isl is noted in `maps`.

    Exact for affine subscripts and bounds; whatever else is taken to touch all it could, with a coded reason. Looks at
    types only: the result holds for all shapes. What buffers may have late is no dependence.
    """
    maps = maps or Maps()
    model = model or model_loop(program, number, types)
    nest, space = model.nest, model.space
    scalars = scalar_roles(nest, types, model.live_after)
    accesses = tuple(access_relation(reference, space, maps) for reference in model.references)
    carried = tuple(_carried_accesses(nest, scalars, space))
    domain = space.text()
    dependences = None if study is None else dependences_of(study, maps)
    held = held_by(nest.function.assumed)
    exact = tuple(one for one in accesses if one.array not in nest.function.relaxed)
    others = (*exact, *carried) if dependences is None else carried
    dependences = (*(dependences or ()), *find_dependences(others, domain, len(nest.dims), nest.ordered, maps, held))
    reasons = (*_early_exits(nest), *repeated_reasons(nest))
    applied = (*_applied(accesses, nest), *_pulled(accesses, nest, space, types))
    return LoopDependences(domain, applied, dependences, scalars, reasons)


def _applied(accesses: Sequence[Access], nest: LoopNest) -> Iterator[Access]:
    """The accesses with those that applying updates makes in place of those to buffers."""
    own = {one.name: one for one in nest.function.buffered}
    snapshots = {name for one in nest.function.late for name in one.own[1:]} | {one.name for one in nest.replicas}
    for access in accesses:
        if access.array in own:
            found = own[access.array]
            for name in (found.array, *found.helpers):
                yield replace(access, array=name, is_write=access.is_write and name in found.changed)
        elif access.array not in snapshots:
            yield access


def _pulled(accesses: Sequence[Access], nest: LoopNest, space: Space, types: Types) -> Iterator[Access]:
    """The accesses that pulling copies together makes, to all elements of their arrays."""
    for one in nest.replicas:
        is_write = any(access.array == one.name and access.is_write for access in accesses)
        for name in one.changed:
            kind = types.get(name)
            if isinstance(kind, ArrayType):
                elements = ", ".join(f"e{axis}" for axis in range(kind.ndim))
                relation = space.text().replace("] :", f"] -> {isl_name(name)}[{elements}] :", 1)
                yield Access(name, f"{name}[…]", is_write, True, relation, False, None, one.span)


def _carried_accesses(nest: LoopNest, scalars: ScalarRoles, space: Space) -> Iterator[Access]:
    """A carried scalar as what it is: an array without dimensions that every iteration reads and writes."""
    inside = " and ".join((*space.constraints, *space.equations)) or "true"
    hidden = f"exists {', '.join(space.values)}: " if space.values else ""
    read_first = exposed_scalars(nest.body, nest.dims)
    for name, span in scalars.carried:
        relation = (
            f"{parameter_list(space.names)}{{ [{', '.join(space.dims)}] -> {isl_name(name)}[] : {hidden}{inside} }}"
        )
        if name in nest.function.in_turn:
            message = f"`{name}` decides what later iterations evaluate, and {dict(nest.function.deciding)[name]}"
            reason = Reason(ReasonKind.BLOCKS, "ORN104", message, (span,), Hint.IN_TURN.format(name=name))
        elif name in read_first:
            message, hint = f"`{name}` passes a value from one iteration to the next", Hint.SCALAR.format(name=name)
            if _is_compared(name, nest):
                hint = Hint.BEST.format(name=name)
            turn = next((one for one in nest.function.turns if one.name == name), None)
            if turn is not None:
                message, hint = f"{turn.words} depends on the iteration before", ""
            counted = dict(nest.function.counters).get(name)
            if counted is not None:
                message = f"how many items `{counted}` has passes from one iteration to the next"
                hint = Hint.LIST.format(name=counted)
            reason = Reason(ReasonKind.BLOCKS, "ORN104", message, (span,), hint)
        else:
            message = f"`{name}` keeps after the loop what its last iteration set it to"
            reason = Reason(ReasonKind.BLOCKS, "ORN111", message, (span,), _hint_for_last(name, nest))
        yield Access(name, name, True, False, relation, True, reason, span)


def _hint_for_last(name: str, nest: LoopNest) -> str:
    if not all(directions(nest)):
        return Hint.STEP
    changed = [dim for dim in nest.dims if dim in assigned_places(nest.body)]
    return Hint.VARIABLE.format(name=changed[0]) if changed else Hint.LAST.format(name=name)


def _is_compared(name: str, nest: LoopNest) -> bool:
    """Whether a scalar is given a value where it is compared with something else, as a least or greatest value is."""
    tests = [one.test for one in every(If, *nest.body) if name in assigned_places(one.body)]
    tests += [one.test for one in every(Choose, *nest.body) if name in names_in(one.then, one.orelse)]
    nodes = every(Compare, *tests)
    return any(isinstance(operand, Var) and operand.name == name for node in nodes for operand in node.operands)


def _early_exits(nest: LoopNest) -> Iterator[Reason]:
    """Statements that end the whole loop before its last iteration, which later ones must not come before."""
    for node in _leaving(nest.body):
        word = node.word if isinstance(node, Break) else "return"
        message = f"`{word}` ends the loop early, so a later iteration must not start before an earlier one is done"
        yield Reason.of("ORN110", message, node.span)


def _leaving(body: tuple[Stmt, ...]) -> Iterator[Break | Return]:
    for statement in body:
        if isinstance(statement, Return) or (isinstance(statement, Break) and not statement.is_first):
            yield statement
        elif isinstance(statement, For | While):
            yield from every(Return, statement)
        else:
            blocks: tuple[tuple[Node, ...], ...] = (
                getattr(statement, "body", ()), getattr(statement, "orelse", ()),
            )  # fmt: skip
            for block in blocks:
                yield from _leaving(block)  # type: ignore[arg-type]
