"""Which `for`s carry a dependence, found by running a nest in Python with every access recorded.

It knows nothing of the loop language, of isl or of Orion's analysis: the function's own text is changed so that loops,
subscripts and scalars report to a recorder. An array element makes a loop carry a dependence where two of its trips, in
one round of the loops around it, touch the element and one of them writes it (by memory: values may be overwritten in
between). A scalar makes it do so where a trip reads what an earlier trip wrote, or where several trips write what is
read after the loop: what each trip writes before it reads it is private to the trip. Scalars that a loop only updates,
by one associative operator, are reductions and do not count.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.oracles.nests import Nest

Frame = tuple[int, int, int]
"""A running loop: the number of its `for`, which round of it (counted from the start), which trip."""


SEVERAL = -1
"""In place of a trip: several trips, none of which writes."""


@dataclass(frozen=True)
class LoopFacts:
    """A `for` of the source, by its number in textual order. `witness` says why it carries a dependence, "" if it does
    not. `is_affine`: nothing in it depends on data. `most_trips` is the most that it made in a row."""

    number: int
    line: int
    witness: str
    is_affine: bool
    most_trips: int

    @property
    def is_parallel(self) -> bool:
        return not self.witness


def loop_facts(nest: Nest, size: int = 0) -> list[LoopFacts]:
    """The facts of every `for`, from a run with the arguments of that size."""
    tree = ast.parse(nest.source)
    arguments = nest.arguments(size)
    loops = [node for node in ast.walk(tree) if isinstance(node, ast.For)]
    loops.sort(key=lambda loop: loop.lineno)
    arrays = {name for name, value in arguments.items() if isinstance(value, np.ndarray)}
    affine = [is_affine(loop, arrays) for loop in loops]
    reductions = [reduction_names(loop) for loop in loops]
    recorder = Recorder(reductions)
    lines = [loop.lineno for loop in loops]
    reporting = ast.fix_missing_locations(Reporting(tree, arrays, loops).visit(tree))
    scope: dict[str, Any] = {"np": np, "_trips": recorder.trips, "_read": recorder.read, "_write": recorder.write}
    scope |= {"_get": recorder.get, "_set": recorder.set}
    exec(compile(reporting, "<recorded nest>", "exec"), scope)  # the text is ours
    with np.errstate(all="ignore"):
        scope["nest"](**arguments)
    return [
        LoopFacts(number, line, recorder.carried.get(number, ""), affine[number], recorder.most.get(number, 0))
        for number, line in enumerate(lines)
    ]


# ---------------------------------------------------------------- while it runs


@dataclass
class Recorder:
    """What the changed function calls. `carried` has a witness for each loop that carries a dependence."""

    reductions: list[set[str]]
    frames: tuple[Frame, ...] = ()
    rounds: int = 0
    seen: dict[tuple[Any, ...], tuple[int, bool]] = field(default_factory=dict)
    written: dict[str, tuple[Frame, ...]] = field(default_factory=dict)
    writers: dict[tuple[str, int], tuple[int, bool]] = field(default_factory=dict)
    carried: dict[int, str] = field(default_factory=dict)
    most: dict[int, int] = field(default_factory=dict)

    def trips(self, number: int, values: range) -> Iterator[int]:
        around = self.frames
        self.rounds += 1
        own = self.rounds
        self.most[number] = max(self.most.get(number, 0), len(values))
        try:
            for trip, value in enumerate(values):
                self.frames = (*around, (number, own, trip))
                yield value
        finally:
            self.frames = around

    def read(self, name: str, array: np.ndarray, index: Any) -> Any:
        self.note(name, array, index, False)
        return array[index]

    def write(self, name: str, array: np.ndarray, index: Any, value: Any) -> None:
        self.note(name, array, index, True)
        array[index] = value

    def note(self, name: str, array: np.ndarray, index: Any, is_write: bool) -> None:
        parts = index if isinstance(index, tuple) else (index,)
        element = tuple(int(at) % extent for at, extent in zip(parts, array.shape, strict=True))
        for number, own, trip in self.frames:
            if number in self.carried:
                continue
            key = (own, name, element)
            first, wrote = self.seen.setdefault(key, (trip, is_write))
            if first == trip:
                self.seen[key] = (trip, wrote or is_write)
            elif wrote or is_write:
                other = "another" if first == SEVERAL else first
                self.carried[number] = f"trips {other} and {trip} touch {name}{list(element)}"
            else:
                self.seen[key] = (SEVERAL, False)

    def set(self, name: str, value: Any) -> Any:
        self.written[name] = self.frames
        for _, own, trip in self.frames:
            first, several = self.writers.setdefault((name, own), (trip, False))
            if first != trip and not several:
                self.writers[name, own] = (first, True)
        return value

    def get(self, name: str, value: Any) -> Any:
        source = self.written.get(name, ())
        here = self.frames
        for level, (number, own, trip) in enumerate(source):
            if level < len(here) and here[level][1] == own:
                if here[level][2] == trip:
                    continue
                self.scalar(number, name, f"trip {here[level][2]} reads what trip {trip} wrote to {name}")
                break
            for inner, round_of_it, _ in source[level:]:
                if self.writers[name, round_of_it][1]:
                    self.scalar(inner, name, f"several trips write {name}, which is read after the loop")
            break
        return value

    def scalar(self, number: int, name: str, why: str) -> None:
        if name not in self.reductions[number]:
            self.carried.setdefault(number, why)


# ---------------------------------------------------------------- the changed function


class Reporting(ast.NodeTransformer):
    """Makes every loop, subscript of an array and scalar report to the recorder."""

    def __init__(self, tree: ast.Module, arrays: set[str], loops: list[ast.For]) -> None:
        self.arrays = arrays
        self.numbers = {id(loop): number for number, loop in enumerate(loops)}
        variables = {loop.target.id for loop in loops if isinstance(loop.target, ast.Name)}
        stored = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        self.scalars = stored - variables

    def visit_For(self, node: ast.For) -> ast.For:
        number = self.numbers[id(node)]
        node.iter = called("_trips", ast.Constant(number), self.visit(node.iter))
        found = [self.visit(statement) for statement in node.body]
        node.body = [one for part in found for one in (part if isinstance(part, list) else [part])]
        return node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id in self.scalars and isinstance(node.ctx, ast.Load):
            return called("_get", ast.Constant(node.id), ast.Name(node.id, ast.Load()))
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        if isinstance(node.value, ast.Name) and node.value.id in self.arrays:
            return called("_read", *self.place(node))
        return ast.Subscript(node.value, self.visit(node.slice), node.ctx)

    def place(self, node: ast.Subscript) -> tuple[ast.expr, ...]:
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
        if isinstance(target, ast.Subscript):
            return ast.Expr(called("_write", *self.place(target), value))
        assert isinstance(target, ast.Name)
        return ast.Assign([target], called("_set", ast.Constant(target.id), value))


def called(function: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(function, ast.Load()), list(arguments), [])


# ---------------------------------------------------------------- what the text of a loop says


def is_affine(loop: ast.For, arrays: set[str]) -> bool:
    """Whether nothing in the loop depends on data: no subscript, bound or condition uses an array element or a scalar,
    and nothing leaves a loop early."""
    assigned = {n.id for n in ast.walk(loop) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    variables = {n.target.id for n in ast.walk(loop) if isinstance(n, ast.For) and isinstance(n.target, ast.Name)}
    data = assigned - variables
    for node in ast.walk(loop):
        if isinstance(node, ast.While | ast.Break | ast.Continue):
            return False
        parts: list[ast.expr] = []
        if isinstance(node, ast.For):
            parts = [node.iter]
        elif isinstance(node, ast.If | ast.IfExp):
            parts = [node.test]
        elif isinstance(node, ast.Subscript):
            parts = [node.slice]
        for part in (inner for outer in parts for inner in ast.walk(outer)):
            if isinstance(part, ast.Name) and part.id in data:
                return False
            if isinstance(part, ast.Subscript) and isinstance(part.value, ast.Name) and part.value.id in arrays:
                return False
    return True


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
