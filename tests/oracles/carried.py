"""Which `for`s carry a dependence, found by running a nest in Python with every access recorded.

It knows nothing of the loop language, of isl or of Orion's analysis: the function's own text is changed so that loops,
subscripts and scalars report to a recorder. A loop carries a dependence where two of its trips, in one round of the
loops around it, touch an array element or a scalar and one of them writes it (by memory: values may be overwritten in
between). Three things are told apart:

- A scalar that each trip writes before it reads it, and that is not read after the loop, is private to a trip: no
  dependence. Neither is one that the loop only updates, by one associative operator: a reduction. Nor are those of
  `tests.oracles.idioms`: taken from the best trip, or growing by a constant in each.
- Where no trip reads what it has not written itself, only the last value is to be kept: *private copies* remove the
  dependence. Of an array the last trip must write all that any trip writes, so that its copy is the last value.
- All others stay.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import product
from types import CodeType
from typing import Any

import numpy as np

from tests.oracles.idioms import chosen_names, growing_names
from tests.oracles.nests import Nest

Frame = tuple[int, int, int]
"""A running loop: the number of its `for`, which round of it (counted from the start), which trip."""

Element = tuple[int, ...]


@dataclass(frozen=True)
class LoopFacts:
    """A `for` of the source, by its number in textual order. `witness` says why it carries a dependence, "" if it does
    not. `copies_help`: private copies, the last of which is kept, remove all that it carries. `is_affine`: neither it
    nor the bounds of loops around it depend on data. `most_trips` is the most that it made in a row."""

    number: int
    line: int
    witness: str
    copies_help: bool
    is_affine: bool
    most_trips: int

    @property
    def is_parallel(self) -> bool:
        return not self.witness


class Recording:
    """A nest whose function reports what it does; it can be run with any arguments."""

    def __init__(self, nest: Nest) -> None:
        tree = ast.parse(nest.source)
        loops = [node for node in ast.walk(tree) if isinstance(node, ast.For)]
        loops.sort(key=lambda loop: loop.lineno)
        arrays = set(nest.arrays)
        self.lines = [loop.lineno for loop in loops]
        data = {name.id for name in stored_names(tree)} | variables_of_ended_loops(tree) | set(nest.scalars)
        self.affine = [is_affine(loop, loops, data, arrays) for loop in loops]
        self.reductions = [(reduction_names(one) | chosen_names(one) | growing_names(one)) - arrays for one in loops]
        reporting = ast.fix_missing_locations(Reporting(tree, arrays, loops).visit(tree))
        self.code: CodeType = compile(reporting, "<recorded nest>", "exec")

    def facts(self, arguments: Mapping[str, Any], most_trips: int | None = None) -> list[LoopFacts]:
        """The facts of every `for`, from a run with these arguments that ends after so many trips of all loops."""
        recorder = Recorder(self.reductions, most_trips)
        self.run(recorder, arguments)
        carried = recorder.copied | recorder.carried
        helped = recorder.copied.keys() - recorder.carried.keys()
        return [
            LoopFacts(number, line, carried.get(number, ""), number in helped, affine, recorder.most.get(number, 0))
            for number, (line, affine) in enumerate(zip(self.lines, self.affine, strict=True))
        ]

    def run(self, recorder: Recorder, arguments: Mapping[str, Any]) -> None:
        """Run the function; what it does is told to the recorder."""
        scope: dict[str, Any] = {"np": np, "_trips": recorder.trips, "_read": recorder.read, "_write": recorder.write}
        scope |= {"_get": recorder.get, "_set": recorder.set, "_slice": slice}
        exec(self.code, scope)  # the text is ours
        with np.errstate(all="ignore"), suppress(EnoughTripsError):
            scope["nest"](**arguments)


def loop_facts(nest: Nest, size: int = 0) -> list[LoopFacts]:
    """The facts of every `for`, from a run with the arguments of that size."""
    return Recording(nest).facts(nest.arguments(size))


class EnoughTripsError(Exception):
    """The loops have made as many trips as they may."""


# ---------------------------------------------------------------- while it runs


@dataclass
class Use:
    """What the trips of one round of a loop do to an array, or to a scalar (an array with one element).

    `last` is the last trip that touches an element, `own` what trip `trip` has written so far, `written` what any has.
    `meeting`: two trips that touch one element which one of them writes; "" if none do. `is_exposed`: some trip has
    read an element that it had not written.
    """

    trip: int = -1
    own: set[Element] = field(default_factory=set)
    written: set[Element] = field(default_factory=set)
    last: dict[Element, int] = field(default_factory=dict)
    several: set[Element] = field(default_factory=set)
    meeting: str = ""
    is_exposed: bool = False

    def note(self, name: str, element: Element, trip: int, is_write: bool) -> None:
        if trip != self.trip:
            self.trip, self.own = trip, set()
        before = self.last.get(element, trip)
        self.last[element] = trip
        if before != trip:
            self.several.add(element)
        if is_write:
            self.own.add(element)
            self.written.add(element)
        elif element not in self.own:
            self.is_exposed = True
        if not self.meeting and element in self.several and element in self.written:
            others = f"trips {before} and {trip}" if before != trip else f"trip {trip} and earlier ones"
            self.meeting = f"{others} touch {name}{list(element) if element else ''}"


@dataclass
class Recorder:
    """What the changed function calls. `carried` has a witness for each loop that carries a dependence which stays,
    `copied` one for each that carries one which private copies remove."""

    reductions: list[set[str]]
    trips_left: int | None = None
    frames: tuple[Frame, ...] = ()
    rounds: int = 0
    uses: dict[int, dict[str, Use]] = field(default_factory=dict)
    scalar_uses: dict[tuple[int, str], Use] = field(default_factory=dict)
    written: dict[str, tuple[Frame, ...]] = field(default_factory=dict)
    writers: dict[tuple[str, int], tuple[int, bool]] = field(default_factory=dict)
    carried: dict[int, str] = field(default_factory=dict)
    copied: dict[int, str] = field(default_factory=dict)
    most: dict[int, int] = field(default_factory=dict)

    def trips(self, number: int, values: range) -> Iterator[int]:
        around = self.frames
        self.rounds += 1
        own, trip = self.rounds, -1
        uses = self.uses[own] = {}
        self.most[number] = max(self.most.get(number, 0), len(values))
        try:
            for trip, value in enumerate(values):
                self.one_more_trip()
                self.frames = (*around, (number, own, trip))
                yield value
            self.end(number, uses, trip)
        except GeneratorExit:  # the loop was left early; where the whole run was, its last trip says nothing
            if self.trips_left is None or self.trips_left >= 0:
                self.end(number, uses, trip)
            raise
        finally:
            self.frames = around
            del self.uses[own]

    def one_more_trip(self) -> None:
        if self.trips_left is not None:
            self.trips_left -= 1
            if self.trips_left < 0:
                raise EnoughTripsError

    def end(self, number: int, uses: Mapping[str, Use], last: int) -> None:
        """The round is over: the arrays whose last values no copy has make the loop carry a dependence."""
        for use in uses.values():
            if use.meeting and not (use.trip == last and use.own == use.written):
                self.carried.setdefault(number, f"{use.meeting}, and the last trip does not write all that others did")

    def read(self, name: str, array: np.ndarray, index: Any) -> Any:
        self.note(name, array, index, False)
        return array[index]

    def write(self, name: str, array: np.ndarray, index: Any, value: Any) -> None:
        self.note(name, array, index, True)
        array[index] = value

    def note(self, name: str, array: np.ndarray, index: Any, is_write: bool) -> None:
        elements = elements_of(index, array.shape)
        for number, own, trip in self.frames:
            if number not in self.carried:
                uses = self.uses[own]
                use = uses.get(name)
                if use is None:
                    use = uses[name] = Use()
                for element in elements:
                    use.note(name, element, trip, is_write)
                if use.meeting:
                    (self.carried if use.is_exposed else self.copied).setdefault(number, use.meeting)

    # ------------------------------------------------------------ scalars

    def set(self, name: str, value: Any) -> Any:
        self.written[name] = self.frames
        self.scalar(name, True)
        for _, own, trip in self.frames:
            first, several = self.writers.setdefault((name, own), (trip, False))
            if first != trip and not several:
                self.writers[name, own] = (first, True)
        return value

    def get(self, name: str, value: Any) -> Any:
        """A use of a scalar: of a loop that has ended, and of which several trips wrote it, the last value is kept."""
        source, here = self.written.get(name, ()), self.frames
        self.scalar(name, False)
        for level, (_, own, trip) in enumerate(source):
            in_round = level < len(here) and here[level][1] == own
            if in_round and here[level][2] == trip:
                continue
            for inner, round_of_it, _ in source[level + in_round :]:
                if self.writers[name, round_of_it][1] and name not in self.reductions[inner]:
                    self.copied.setdefault(inner, f"several trips write {name}, which is read after the loop")
            break
        return value

    def scalar(self, name: str, is_write: bool) -> None:
        for number, own, trip in self.frames:
            if number not in self.carried and name not in self.reductions[number]:
                use = self.scalar_uses.setdefault((own, name), Use())
                use.note(name, (), trip, is_write)
                if use.meeting and use.is_exposed:
                    self.carried[number] = use.meeting


def elements_of(index: Any, shape: tuple[int, ...]) -> list[Element]:
    """The elements that a subscript stands for, of slices and of axes that it leaves out all of them.

    >>> elements_of(-1, (4,)), elements_of((1, slice(2, None)), (3, 4)), elements_of(0, (1, 2))
    ([(3,)], [(1, 2), (1, 3)], [(0, 0), (0, 1)])
    """
    parts = index if isinstance(index, tuple) else (index,)
    parts = (*parts, *(slice(None),) * (len(shape) - len(parts)))
    axes = [
        range(extent)[part] if isinstance(part, slice) else (int(part) % extent,)
        for part, extent in zip(parts, shape, strict=True)
    ]
    return list(product(*axes))


# ---------------------------------------------------------------- the changed function


class Reporting(ast.NodeTransformer):
    """Makes every loop, subscript of an array and scalar report to the recorder."""

    def __init__(self, tree: ast.Module, arrays: set[str], loops: list[ast.For]) -> None:
        self.arrays = arrays
        self.numbers = {id(loop): number for number, loop in enumerate(loops)}
        variables = {loop.target.id for loop in loops if isinstance(loop.target, ast.Name)}
        stored = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        self.scalars = stored - variables - arrays

    def visit_For(self, node: ast.For) -> ast.For:
        number = self.numbers[id(node)]
        node.iter = called("_trips", ast.Constant(number), self.visit(node.iter))
        found = [self.visit(statement) for statement in node.body]
        node.body = [one for part in found for one in (part if isinstance(part, list) else [part])]
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        if isinstance(node.value, ast.Name):  # `z.shape` reads no element
            return node
        return ast.Attribute(self.visit(node.value), node.attr, node.ctx)

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id in self.arrays and isinstance(node.ctx, ast.Load):
            return called("_read", *self.place(node))
        if node.id in self.scalars and isinstance(node.ctx, ast.Load):
            return called("_get", ast.Constant(node.id), ast.Name(node.id, ast.Load()))
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        if isinstance(node.value, ast.Name) and node.value.id in self.arrays:
            return called("_read", *self.place(node))
        return ast.Subscript(node.value, self.visit(node.slice), node.ctx)

    def place(self, node: ast.Subscript | ast.Name) -> tuple[ast.expr, ...]:
        """The name of an array, the array, and the part of it: all of it where only the name stands there."""
        if isinstance(node, ast.Name):
            return ast.Constant(node.id), ast.Name(node.id, ast.Load()), called("_slice", ast.Constant(None))
        assert isinstance(node.value, ast.Name)
        return ast.Constant(node.value.id), ast.Name(node.value.id, ast.Load()), self.visit(node.slice)

    def visit_Assign(self, node: ast.Assign) -> ast.stmt | list[ast.stmt]:
        target = node.targets[0]
        if not isinstance(target, ast.Tuple):
            return self.assign(target, self.visit(node.value))
        parts = ast.Name("_parts", ast.Load())
        found: list[ast.stmt] = [ast.Assign([ast.Name("_parts", ast.Store())], self.visit(node.value))]
        for number, item in enumerate(target.elts):
            found.append(self.assign(item, ast.Subscript(parts, ast.Constant(number), ast.Load())))
        return found

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt:
        old = ast.parse(ast.unparse(node.target), mode="eval").body
        return self.assign(node.target, ast.BinOp(self.visit(old), node.op, self.visit(node.value)))

    def assign(self, target: ast.expr, value: ast.expr) -> ast.stmt:
        if isinstance(target, ast.Subscript) or (isinstance(target, ast.Name) and target.id in self.arrays):
            return ast.Expr(called("_write", *self.place(target), value))
        assert isinstance(target, ast.Name)
        return ast.Assign([target], called("_set", ast.Constant(target.id), value))


def called(function: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(function, ast.Load()), list(arguments), [])


# ---------------------------------------------------------------- what the text of a loop says


def is_affine(loop: ast.For, loops: list[ast.For], data: set[str], arrays: set[str]) -> bool:
    """Whether nothing in the loop, and no bound of a loop around it, depends on data: subscripts, bounds and conditions
    are made of constants, arguments, and variables of loops that are running, with no product of two of these, and no
    remainder by one; and nothing leaves a loop early. `data` are the names that are none of these."""
    inside = list(ast.walk(loop))
    parts: list[ast.expr] = [outer.iter for outer in loops if outer is not loop and is_around(outer, loop)]
    for node in inside:
        match node:
            case ast.While() | ast.Break() | ast.Continue():
                return False
            case ast.For():
                parts.append(node.iter)
            case ast.If() | ast.IfExp():
                parts.append(node.test)
            case ast.Subscript():
                parts.append(node.slice)
    return all(is_affine_expression(part, data, arrays) for part in parts)


def is_around(outer: ast.For, loop: ast.For) -> bool:
    assert loop.end_lineno is not None
    assert outer.end_lineno is not None
    return outer.lineno < loop.lineno and loop.end_lineno <= outer.end_lineno


def is_affine_expression(expression: ast.expr, data: set[str], arrays: set[str]) -> bool:
    for part in ast.walk(expression):
        match part:
            case ast.Name(name) if name in data:
                return False
            case ast.Subscript(ast.Name(name)) if name in arrays:
                return False
            case ast.BinOp(left, ast.Mult(), right) if not is_number(left) and not is_number(right):
                return False
            case ast.BinOp(_, ast.Mod() | ast.FloorDiv(), right) if not is_number(right):
                return False
    return True


def is_number(expression: ast.expr) -> bool:
    return all(isinstance(part, ast.Constant | ast.UnaryOp | ast.unaryop) for part in ast.walk(expression))


def stored_names(function: ast.AST) -> Iterator[ast.Name]:
    """The names that are assigned other than as the variable of a loop."""
    targets = {id(node.target) for node in ast.walk(function) if isinstance(node, ast.For)}
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and id(node) not in targets:
            yield node


def variables_of_ended_loops(function: ast.AST) -> set[str]:
    """The variables of loops that are used outside of all loops with that variable."""
    found: set[str] = set()
    variables = {n.target.id for n in ast.walk(function) if isinstance(n, ast.For) and isinstance(n.target, ast.Name)}

    def look(node: ast.AST, running: frozenset[str]) -> None:
        if isinstance(node, ast.Name) and node.id in variables - running:
            found.add(node.id)
        if isinstance(node, ast.For) and isinstance(node.target, ast.Name):
            look(node.iter, running)
            for statement in node.body:
                look(statement, running | {node.target.id})
            return
        for child in ast.iter_child_nodes(node):
            look(child, running)

    look(function, frozenset())
    return found


def reduction_names(loop: ast.For) -> set[str]:
    """The scalars that the loop only updates, by one associative operator."""
    updates: dict[str, set[str]] = {}
    inside: dict[str, int] = {}
    for node in ast.walk(loop):
        found = update_of(node)
        if found is not None:
            name, operator = found
            updates.setdefault(name, set()).add(operator)
            inside[name] = inside.get(name, 0) + mentions(node, name)
    return {name for name, found in updates.items() if len(found) == 1 and inside[name] == mentions(loop, name)}


def update_of(node: ast.AST) -> tuple[str, str] | None:
    """The scalar that a statement updates and the operator, None where it is no update."""
    operators = {ast.Add: "+", ast.Sub: "+", ast.Mult: "*"}
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        name, operator = node.target.id, operators.get(type(node.op))
        return (name, operator) if operator and mentions(node, name) == 1 else None
    if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Name):
        return None
    name, value = node.targets[0].id, node.value
    if isinstance(value, ast.BinOp):
        operator = operators.get(type(value.op))
        parts = [value.left] if isinstance(value.op, ast.Sub) else [value.left, value.right]
    elif isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id in ("min", "max"):
        operator, parts = value.func.id, value.args
    else:
        return None
    is_operand = any(isinstance(part, ast.Name) and part.id == name for part in parts)
    return (name, operator) if operator and is_operand and mentions(value, name) == 1 else None


def mentions(node: ast.AST, name: str) -> int:
    return sum(isinstance(part, ast.Name) and part.id == name for part in ast.walk(node))
