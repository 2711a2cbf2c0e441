"""A nest of ranges as statements, each with its own domain and accesses, as the polyhedral model has them.

A *statement* here is what is moved as a whole: one assignment, or a run of them that is tied together by scalars which
only they use, or an inner loop that is no range with affine bounds (its accesses are then over-approximated). Source:
Feautrier 1991; Bondhugula et al. 2008, section 2.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from orion.dataclass import dataclass, field, replace
from orion.dependence.access import Access
from orion.dependence.model import NOTHING, Known, Space, access_relation, inner_constraints, own_space
from orion.dependence.references import InnerLoop, Reference, collect_references, condition_in, definitions, loop_scope
from orion.ir.assigned import assigned_places, leaves_loop
from orion.ir.exposed import exposed_reads
from orion.ir.function import Function
from orion.ir.nodes import (
    Elements,
    Expr,
    For,
    If,
    Node,
    Range,
    Return,
    Stmt,
    Unary,
    count_names,
    every,
    holds,
    names_in,
)
from orion.ir.program import LoopNest, form_of
from orion.ir.types import Types
from orion.passes.dimensions import is_dimension
from orion.sets.affine import Affine, Condition, Form, affine_form, parameter
from orion.sets.maps import Maps
from orion.sets.names import isl_name, number_of, parameter_list

if TYPE_CHECKING:
    import islpy as isl


Place = tuple[int, ...]
"""Where a statement or loop stands: its number in the body of each loop around it, from the outermost on."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement and where it stands: inside `loops`, outermost first, at `place[d]` in the body of loop d - 1.

    `domain` is the isl set of its instances, named by `name`; the relations of `accesses` go from there. `subscripts`
    has, for each access with affine subscripts, its array, whether it is a write, and the coefficients of the loop
    dimensions: (array dimensions, loops). `references` are what the accesses to arrays were made from.
    """

    name: str
    loops: tuple[For, ...]
    place: Place
    body: tuple[Stmt, ...]
    space: Space
    domain: str
    accesses: tuple[Access, ...]
    subscripts: tuple[tuple[str, bool, NDArray[np.float64]], ...] = ()
    references: tuple[Reference, ...] = ()


@dataclass(frozen=True, slots=True)
class Region:
    """All statements of a nest, in textual order. `scalars` are those that pass values between statements."""

    nest: LoopNest
    statements: tuple[Statement, ...]
    scalars: frozenset[str]


class NoRegionError(Exception):
    """The nest has no form as statements with affine domains; never shown to users."""


def known_of(loops: Iterable[For]) -> Known:
    """What holds of the variables of loops around a nest: they are in their ranges, unless something in the loop
    changes the variable or a name in the bounds."""
    constraints: list[str] = []
    names: set[str] = set()
    for loop in loops:
        if not isinstance(loop.space, Range):
            continue
        var, bounds = loop.space.var, (loop.space.start, loop.space.stop, loop.space.step)
        used = names_in(*bounds)
        if assigned_places(loop.body).keys().isdisjoint({var, *used}):
            forms = [affine_form(bound, {name: parameter(name) for name in used}) for bound in bounds]
            constraints += inner_constraints(InnerLoop(isl_name(var), *forms))
            names |= {isl_name(var)}.union(*(form.names for form in forms if isinstance(form, Affine)))
    return Known(tuple(constraints), frozenset(names))


def find_region(
    nest: LoopNest, types: Types, live_after: frozenset[str], known: Known = NOTHING, maps: Maps | None = None
) -> Region | None:
    """The statements of a nest of ranges, or None where its loops are not affine or its names do not allow it.

    `live_after` are the scalars whose values are needed after the nest. What is made in isl is noted in `maps`.
    """
    outer = nest.loops[0]
    if isinstance(outer.space, Elements) or holds((Elements, Return), outer):
        return None
    try:
        known_forms = definitions(nest.function)
        finder = _Finder(nest.function, types, outer, live_after, known, known_forms, maps or Maps())
        finder.loop(outer, (), (0,))
        finder.check_names()
    except NoRegionError:
        return None
    return Region(nest, tuple(finder.found), frozenset(finder.carried))


@dataclass
class _Finder:
    function: Function
    types: Types
    outer: For
    live_after: frozenset[str]
    known: Known
    definitions: Mapping[str, Form]
    maps: Maps
    found: list[Statement] = field(default_factory=list)
    carried: set[str] = field(default_factory=set)

    def loop(self, loop: For, around: tuple[For, ...], place: Place) -> None:
        if not is_dimension(loop, list(around)) or any(leaves_loop(statement) for statement in loop.body):
            raise NoRegionError
        loops = (*around, loop)
        for position, items in enumerate(self.groups(loop.body)):
            inner = items[0]
            if len(items) == 1 and isinstance(inner, For) and self.is_transparent(inner, loops):
                self.loop(inner, loops, (*place, position))
            else:
                self.statement(items, loops, (*place, position))

    def is_transparent(self, loop: For, around: tuple[For, ...]) -> bool:
        affine = isinstance(loop.space, Range) and is_dimension(loop, list(around))
        return affine and not any(leaves_loop(statement) for statement in loop.body)

    # ------------------------------------------------------------ what is moved as a whole

    def groups(self, body: tuple[Stmt, ...]) -> Iterator[tuple[Stmt, ...]]:
        """The body in pieces: from the first to the last mention of a scalar that only this body uses."""
        joined: set[int] = set()  # k: items k and k + 1 belong together
        for name in self.own_scalars(body):
            mentions = [k for k, statement in enumerate(body) if _mentions(statement, name)]
            joined |= {*range(mentions[0], mentions[-1])}
        start = 0
        for end in range(1, len(body) + 1):
            if end - 1 not in joined:
                yield body[start:end]
                start = end

    def own_scalars(self, body: tuple[Stmt, ...]) -> list[str]:
        """The scalars assigned in the body that pass no value into it, out of it, or from one body further in to
        another.

        Others that the body assigns, and that are not such scalars of a body further in, are noted as `carried`.
        """
        own = []
        for name in self.scalars(body):
            if name in self.live_after or not _stays_inside(self.outer.body, name):
                self.carried.add(name)
            elif not _apart(body, name):
                own.append(name)  # where it is apart, it is looked at again in the bodies of the loops
        return own

    def scalars(self, body: tuple[Stmt, ...]) -> list[str]:
        """The names that the body assigns, but for the variables of its loops."""
        variables = {space.var for space in _ranges(self.outer)}
        return [name for name in assigned_places(body) if name not in variables]

    # ------------------------------------------------------------ one statement

    def statement(self, body: tuple[Stmt, ...], loops: tuple[For, ...], place: Place) -> None:
        nest = statement_nest(self.function, loops, body)
        scope = loop_scope(nest, self.types, self.definitions)
        space = own_space(nest, self.types, scope)
        if space.reasons:
            raise NoRegionError
        constraints = (*space.constraints, *self.known.constraints)
        space = replace(space, constraints=constraints, names=space.names | self.known.names)
        name = f"S{len(self.found)}"
        every = collect_references(nest, self.types, scope)
        references = tuple(one for one in every if one.array not in self.function.relaxed)
        accesses = [access_relation(reference, space, self.maps, name) for reference in references]
        text = space.text().replace("{ [", f"{{ {name}[", 1)
        found = ((one, _subscripts(one, space)) for one in references)
        matrices = tuple((one.array, one.is_write, matrix) for one, matrix in found if matrix is not None)
        self.found.append(Statement(name, loops, place, body, space, text, tuple(accesses), matrices, references))

    def check_names(self) -> None:
        """Add the accesses to carried scalars; refuse what moving statements would change the meaning of."""
        changed = {isl_name(name) for name in assigned_places((self.outer,))}
        variables = {isl_name(space.var) for space in _ranges(self.outer)}
        if variables & {isl_name(name) for name in self.live_after}:
            raise NoRegionError
        for number, statement in enumerate(self.found):
            own = {isl_name(name) for name in _variables(statement.loops)}
            used = {isl_name(name) for name in exposed_reads(statement.body, ())}
            bound = {isl_name(name) for name in assigned_places(statement.body)}
            if used & (variables - own) or bound & own:
                raise NoRegionError  # the variable of a loop that has ended, or one that is assigned
            parameters = set(statement.space.names)
            for access in statement.accesses:
                parameters |= _parameters(access.relation)
            if parameters & changed:
                raise NoRegionError
            extra = [
                _scalar_access(statement, name, self.guards_of(name, statement, changed - own))
                for name in sorted(self.carried)
                if _in(statement.body, name)
            ]
            self.found[number] = replace(statement, accesses=(*statement.accesses, *extra))

    def guards_of(self, name: str, statement: Statement, changed: set[str]) -> tuple[Condition, ...]:
        """The affine conditions of the `if`s that all uses of a scalar in a statement stand in, without those on names
        that change meanwhile."""
        nest = statement_nest(self.function, statement.loops, statement.body)
        conditions = (condition_in(nest, self.types, test) for test in _tests_around(name, statement.body))
        return tuple(found for found in conditions if found is not None and found.names.isdisjoint(changed))


def statement_nest(function: Function, loops: tuple[For, ...], body: tuple[Stmt, ...]) -> LoopNest:
    """The statement as if it were the only one in its loops."""
    inner = body
    chain: list[For] = []
    for loop in reversed(loops):
        chain.append(replace(loop, body=inner))
        inner = (chain[-1],)
    chain.reverse()
    return LoopNest(0, form_of(chain[0]), tuple(chain), tuple(_variables(loops)), body, True, function)


def _subscripts(reference: Reference, space: Space) -> NDArray[np.float64] | None:
    """The coefficients of the loop dimensions in the subscripts of an access; None where they are not all affine."""
    rows = []
    for axis in reference.axes:
        if not isinstance(axis, Affine) or reference.inner or space.values:
            return None
        rows.append(_coefficients(axis, space.dims))
    return np.array(rows, np.float64).reshape(-1, len(space.dims))


def _coefficients(form: Affine, dims: tuple[str, ...]) -> list[float]:
    import islpy as isl

    if form.factors is not None:
        factors = dict(form.factors)
        return [float(factors.get(dim, 0)) for dim in dims]
    function = isl.PwAff(f"{parameter_list(form.names - set(dims))}{{ [{', '.join(dims)}] -> [{form.text}] }}")
    return piece_coefficients(function, len(dims))


def piece_coefficients(function: isl.PwAff, dims: int) -> list[float]:
    """The coefficients of the input dimensions; those of its last piece where it has several."""
    import islpy as isl

    found = [0.0] * dims

    def note(_domain: isl.Set, piece: isl.Aff) -> None:
        found[:] = [float(number_of(piece.get_coefficient_val(isl.dim_type.in_, d))) for d in range(dims)]

    function.foreach_piece(note)
    return found


def _scalar_access(statement: Statement, name: str, guards: tuple[Condition, ...] = ()) -> Access:
    """A scalar that passes a value from one statement to another: an array without dimensions. `guards` are affine
    conditions under which alone it is used."""
    conditions = (*statement.space.constraints, *statement.space.equations, *(guard.text for guard in guards))
    inside = " and ".join(conditions) or "true"
    hidden = f"exists {', '.join(statement.space.values)}: " if statement.space.values else ""
    dims = ", ".join(statement.space.dims)
    target = f"{statement.name}[{dims}] -> {isl_name(name)}[]"
    names = statement.space.names.union(*(guard.names for guard in guards))
    bound = {*statement.space.dims, *statement.space.values}
    relation = f"{parameter_list(names - bound)}{{ {target} : {hidden}{inside} }}"
    is_write = name in assigned_places(statement.body)
    return Access(name, name, is_write, False, relation, True, None, statement.body[0].span)


def _tests_around(name: str, body: tuple[Stmt, ...]) -> Iterator[Expr]:
    """What holds wherever a scalar is used in a body: the tests of `if`s, or their opposites."""
    users = [statement for statement in body if _mentions(statement, name)]
    match users:
        case [If(test, then, orelse, span)] if not count_names((test,), name):
            if not _in(orelse, name):
                yield test
                yield from _tests_around(name, then)
            elif not _in(then, name):
                yield Unary("not", test, span)
                yield from _tests_around(name, orelse)
        case _:
            pass


def _parameters(relation: str) -> set[str]:
    head, arrow, _ = relation.partition("] -> {")
    return {name.strip() for name in head.lstrip("[").split(",")} if arrow else set()


def _variables(loops: tuple[For, ...]) -> Iterator[str]:
    for loop in loops:
        assert isinstance(loop.space, Range)
        yield loop.space.var


def _ranges(node: Node) -> list[Range]:
    return list(every(Range, node))


def _stays_inside(body: tuple[Stmt, ...], name: str) -> bool:
    """Whether no value of a scalar gets from one iteration of the body to another, nor into the first."""
    if _apart(body, name):
        return all(_stays_inside(s.body, name) for s in body if isinstance(s, For) and _mentions(s, name))
    return name not in exposed_reads(body, ())


def _apart(body: tuple[Stmt, ...], name: str) -> bool:
    """Whether a scalar is used in loops of the body only, and each of them gives it a value before it reads it."""
    users = [statement for statement in body if _mentions(statement, name)]
    return all(
        isinstance(user, For) and not count_names((user.space,), name) and name not in exposed_reads(user.body, ())
        for user in users
    )


def _mentions(statement: Stmt, name: str) -> bool:
    return name in assigned_places((statement,)) or count_names((statement,), name) > 0


def _in(body: tuple[Stmt, ...], name: str) -> bool:
    return any(_mentions(statement, name) for statement in body)
