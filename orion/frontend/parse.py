"""A Python function to the loop language."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from types import FunctionType

from orion.dataclass import dataclass, field, replace
from orion.errors import UnsupportedLoopError, describe
from orion.frontend.accumulators import NO_ACCUMULATORS, AccumulatorOf, Change, write_out_accumulators
from orion.frontend.bars import taken_off, with_trips
from orion.frontend.buffers import NO_BUFFERS, BufferOf, LateOf, with_first_result, write_out_buffers
from orion.frontend.check import UndefinedNameError, check_function
from orion.frontend.constant_lists import write_out_lists
from orion.frontend.counted_lists import CountedList, counted_lists
from orion.frontend.lists import growing_lists, write_lists_apart
from orion.frontend.locate import NO_LINES, FileLines, Located, locate, span_of
from orion.frontend.mapped_keys import write_out_maps
from orion.frontend.matrices import Matrix, candidates, write_out_matrices
from orion.frontend.matrix_attributes import refuse_attributes
from orion.frontend.outside import Outside, taken
from orion.frontend.parse_statements import parse_body, source_fors
from orion.frontend.parts import with_named_bases, with_returned_parts
from orion.frontend.scope import (
    Helper,
    Scope,
    all_nodes,
    assigned_names,
    counting_names,
    iterated_names,
    outer_names,
)
from orion.frontend.tuples import tuple_names
from orion.ir.function import Function, MatrixPart, Rekeyed
from orion.ir.refuse import unsupported
from orion.source import SourceText, Span

NO_MATRICES: Mapping[str, Matrix] = {}


def parse_function(function: FunctionType) -> Function:
    """The function, and the user's functions that it calls, in the loop language.

    Global and closure scalars are taken with the values that they have now. Raises `UnsupportedLoopError` where the
    source cannot be had or holds something that cannot be compiled, with the place and what to write instead.
    """
    return parse_with_outside(function)[0]


def parse_with_outside(
    function: FunctionType,
    matrices: Mapping[str, Matrix] = NO_MATRICES,
    *,
    with_maps: bool = False,
    lines: FileLines = NO_LINES,
    buffers: tuple[LateOf, ...] = NO_BUFFERS,
    accumulators: tuple[AccumulatorOf, ...] = NO_ACCUMULATORS,
    located: Located | None = None,
) -> tuple[Function, Outside]:
    """The function as `parse_function` gives it, and what it and its helpers are made of and take from outside: where
    any of that is another later, it is to be parsed anew. `matrices` are the arguments that are sparse matrices.
    `with_maps`: maps of keys of sparse arrays are made keys. `lines` are those of the file of the function, where it is
    not to be read now. `buffers` and `accumulators` are the arguments that are such, and `located` is the source, where
    it was read already and nothing was written into it."""
    if function.__code__.co_name == "<lambda>":  # as a helper it will do
        what, hint = "a lambda is not a function written with `def`", "write `def name(arguments): …`"
        raise UnsupportedLoopError(describe(what, hint=hint))
    family = _Family(matrices, with_maps, lines, buffers, accumulators)
    parsed = family.parse(function, function.__name__, located)
    return _checked(replace(parsed, helpers=tuple(family.parsed.values()))), taken(family.outside)


def _checked(function: Function) -> Function:
    """The function; UnsupportedLoopError where it, or a helper, reads a name that cannot have a value yet."""
    try:
        return check_function(function)
    except UndefinedNameError as error:
        what = f"`{error.name}` is used before it is assigned"
        raise unsupported(what, error.span, error.function.source, hint="give it a value before") from None


@dataclass(slots=True)
class _Family:
    """The functions that a loop calls, each parsed once; `open` are those that are being parsed, outermost first;
    `outside` are the names that each of them takes from outside."""

    matrices: Mapping[str, Matrix]
    with_maps: bool
    lines: FileLines
    buffers: tuple[LateOf, ...]
    accumulators: tuple[AccumulatorOf, ...]
    parsed: dict[FunctionType, Function] = field(default_factory=dict)
    open: list[FunctionType] = field(default_factory=list)
    outside: list[tuple[FunctionType, set[tuple[str, ...]]]] = field(default_factory=list)
    firsts: set[FunctionType] = field(default_factory=set)
    changes: dict[FunctionType, Change] = field(default_factory=dict)

    def parse(self, function: FunctionType, name: str, located: Located | None = None) -> Function:
        located = located or locate(function, self.lines)
        if function in self.changes:
            self.changes[function](located)
        params = _parameters(located)
        outer = outer_names(function)
        if function in self.firsts:
            with_first_result(located.definition)
        buffers = () if self.open else self.buffers
        relaxed = write_out_buffers(located.definition, buffers, located.source, outer)
        self.firsts |= relaxed.firsts
        added = write_out_accumulators(located, () if self.open else self.accumulators, outer)
        self.changes |= added.changes
        made = {**relaxed.functions, **added.functions}
        outer = {**outer, **made} if made else outer
        late = [one for one in buffers if isinstance(one, BufferOf)]
        at_once = {one.name for one in late if not one.max_delay and not one.is_array}  # the source has none of them
        params = tuple(dict.fromkeys((*params, *(one.name for one in relaxed.params))))
        params = added.params([name for name in params if name not in at_once])
        if not self.open:
            refuse_attributes(located, self.matrices)
        parts = () if self.open else write_out_matrices(located.definition, self.matrices, outer)
        params = _with_parts(params, parts, located.definition)
        rekeyed = write_out_maps(located.definition, outer) if self.with_maps and not self.open else ()
        params = (*params, *(one.name for one in rekeyed))
        write_out_lists(located.definition, outer)
        lists: dict[str, ast.For] = {}
        counted: dict[str, CountedList] = {}
        body = located.definition.body
        nodes = all_nodes(body)
        if not self.open and any(isinstance(node, ast.List | ast.ListComp) for node in nodes):
            write_lists_apart(located.definition)
            lists = growing_lists(located.definition, outer)
            counted = counted_lists(located.definition, outer, {*lists})
            body = located.definition.body
            nodes = all_nodes(body)
        own = {*params, *assigned_names(nodes)}
        seen = {name: value for name, value in outer.items() if name not in own}
        bars = taken_off(located.definition, nodes, seen, located.source)
        nodes = all_nodes(body) if bars else nodes
        scope = Scope(
            located.source,
            frozenset(own),
            iterated_names(nodes),
            counting_names(nodes, outer) - {*params},
            tuple_names(nodes, params),
            outer,
            self.helper,
            arrays=None if self.open else {},
            lists=lists,
            counted=counted,
        )
        self.open.append(function)
        parsed = parse_body(body, scope)
        span = span_of(located.definition, located.source, until=_header_end(located.definition))
        helpers = {
            name: self.helper(one, span, located.source).name for name, one in made.items()
        }  # also those that only applying updates calls
        self.open.pop()
        arrays = tuple(scope.arrays or ())
        self.outside.append((function, scope.outside - {(name,) for name in (*arrays, *made)}))
        constants = tuple(scope.constants.items())
        every = (*params, *arrays)
        bars = with_trips(bars, parsed, every)
        found = Function(
            name,
            every,
            parsed,
            constants,
            (),
            located.source,
            span,
            outside=arrays,
            bars=bars,
            lists=(*scope.places, *counted),
            counters=tuple((one.length, name) for name, one in counted.items()),
            parts=parts,
            rekeyed=rekeyed,
            buffered=tuple(replace(one, apply=one.apply and helpers[one.apply]) for one in relaxed.buffered),
            replicas=tuple(relaxed.replicas),
            buffer_parts=tuple(relaxed.params),
            accumulated=tuple(replace(one, combine=helpers[one.combine]) for one in added.accumulated),
            fors=source_fors(parsed),
        )
        return with_named_bases(found if self.open else with_returned_parts(found), scope.variables)

    def helper(self, function: FunctionType, call: Span, source: SourceText) -> Helper:
        """What a caller of the function must know; it is parsed where it is called first."""
        if function in self.open:
            why = "a recursive function has no fixed number of steps that could be compiled into the loop"
            what = f"`{function.__name__}` calls itself"
            raise unsupported(what, call, source, why=why, hint="write it with a loop")
        if function not in self.parsed:
            parsed = self.parse(function, self._free_name(_name_of(function)))
            self.parsed[function] = parsed
        found = self.parsed[function]
        return Helper(found.name, found.params, _defaults(function))

    def _free_name(self, name: str) -> str:
        taken = {function.name for function in self.parsed.values()}
        candidates = (name if number == 1 else f"{name}_{number}" for number in range(1, len(taken) + 2))
        return next(candidate for candidate in candidates if candidate not in taken)


def _name_of(function: FunctionType) -> str:
    return "lambda_" if function.__name__ == "<lambda>" else function.__name__


def _defaults(function: FunctionType) -> dict[str, object]:
    code = function.__code__
    positional = code.co_varnames[: code.co_argcount]
    values = function.__defaults__ or ()
    defaults = dict(zip(positional[len(positional) - len(values) :], values, strict=True))
    return defaults | (function.__kwdefaults__ or {})


def _parameters(located: Located) -> tuple[str, ...]:
    arguments = located.definition.args
    for starred in (arguments.vararg, arguments.kwarg):
        if starred is not None:
            span = span_of(starred, located.source)
            hint = "name every parameter"
            raise unsupported(f"the parameter `*{starred.arg}` is not supported", span, located.source, hint=hint)
    every = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    return tuple(argument.arg for argument in every)


def _with_parts(params: tuple[str, ...], parts: tuple[MatrixPart, ...], definition: ast.FunctionDef) -> tuple[str, ...]:
    """The parameters with what is taken from matrices in their place: a matrix stays that is used otherwise."""
    used = {node.id for node in ast.walk(definition) if isinstance(node, ast.Name)} if parts else set()
    found: list[str] = []
    for name in params:
        own = [one.name for one in parts if one.matrix == name]
        found += own if own and name not in used else [name, *own]
    return tuple(found)


@dataclass(frozen=True, slots=True)
class SparseUses:
    """The parameters of a function that may be sparse matrices, and the sparse arrays that maps of keys may be made
    keys of. `located` is the source of the function, where nothing was written into it."""

    matrices: frozenset[str]
    mapped: tuple[Rekeyed, ...]
    located: Located | None


def sparse_uses(function: FunctionType, lines: FileLines) -> SparseUses:
    """Return what a function may be given of sparse matrices and maps by its source; nothing where there is none."""
    try:
        located = locate(function, lines)
        found, mapped = candidates(located.definition), write_out_maps(located.definition, outer_names(function))
    except UnsupportedLoopError:
        return SparseUses(frozenset(), (), None)
    return SparseUses(found, mapped, None if mapped else located)


def _header_end(definition: ast.FunctionDef) -> ast.AST:
    """The last node of the `def` line: its return annotation or last parameter, or the definition's own start."""
    arguments = definition.args
    every = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    return definition.returns or (every[-1] if every else definition.body[0])
