"""Arrays with buffers, in the source of a function (`orion.buffer`).

| in the source | becomes |
|---|---|
| `w_late[j] += u`, `w_late[j] -= u` | the same, of an array of each worker's own that its updates are summed in |
| `w[j]`, read | `w[j] + w_late[j]`; with an `apply` its value for the two, where the worker has an update |
| `w[j] += u`, with `relax=("w",)` | `w_late[j] += u` |
| the first and the third, nothing being late | the update of `w[j]` itself |

What the updates are applied with need not be among the parameters of the function: it becomes one.
"""

from __future__ import annotations

import ast
from collections.abc import Collection
from copy import deepcopy
from types import FunctionType
from typing import Any

from orion.arrays.sending import Sending
from orion.dataclass import dataclass, field
from orion.frontend.locate import Located, locate, span_of
from orion.frontend.outside import is_number
from orion.frontend.replicas import ReplicaOf, write_replica
from orion.ir.function import Buffered, BufferPart
from orion.ir.refuse import unsupported
from orion.ir.renaming import fresh
from orion.ir.replicas import Replica, ReplicaPart
from orion.source import SourceText, Span


class SameCode:
    """A function, equal to others with the same code and the same values from outside of it."""

    __slots__ = ("_key", "function")

    def __init__(self, function: FunctionType) -> None:
        cells = tuple(cell.cell_contents for cell in function.__closure__ or ())
        self.function = function
        self._key = function.__code__, function.__defaults__, tuple(map(_told_apart, cells)), id(function.__globals__)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SameCode) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key[0])


def _told_apart(value: object) -> object:
    return (type(value), repr(value)) if is_number(value) else id(value)


@dataclass(frozen=True, slots=True)
class BufferOf:
    """What a call gives for parameter `name`: a buffer, by what the code of the function depends on. `array` and
    `helpers` are names of parameters, None for what is none. Of an array that is relaxed itself, `name` is that of the
    array, and `is_array` is True. `snapshots` are numbers of helpers."""

    name: str
    array: str | None
    helpers: tuple[str | None, ...]
    snapshots: tuple[int, ...]
    apply: SameCode | None
    max_delay: int
    deterministic: bool
    sending: Sending
    ndim: int
    is_array: bool = False


LateOf = BufferOf | ReplicaOf

NO_BUFFERS: tuple[LateOf, ...] = ()


@dataclass
class Written:
    """The buffers and replicas of a function; further parameters, with what of these each is; and the functions that
    its source calls from now on, by name, of which `firsts` are to give only the first of their values."""

    buffered: list[Buffered] = field(default_factory=list)
    replicas: list[Replica] = field(default_factory=list)
    params: list[BufferPart | ReplicaPart] = field(default_factory=list)
    functions: dict[str, FunctionType] = field(default_factory=dict)
    firsts: set[FunctionType] = field(default_factory=set)


def write_out_buffers(
    definition: ast.FunctionDef, given: Collection[LateOf], source: SourceText, taken: Collection[str]
) -> Written:
    """Write the arrays with buffers, or of which each worker has a copy, of a function so. `taken` are names that are
    no others'. UnsupportedLoopError where one is used in another way."""
    found = Written()
    if not given:
        return found
    names = {node.id for node in ast.walk(definition) if isinstance(node, ast.Name)}
    used = {*names, *taken, *(one.arg for one in ast.walk(definition.args) if isinstance(one, ast.arg))}
    for one in given:
        if isinstance(one, ReplicaOf):
            replica, parts = write_replica(definition, one, source, used)
            found.replicas.append(replica)
            found.params += parts
        else:
            _write(definition, one, source, used, found)
    ast.fix_missing_locations(definition)
    return found


def _write(definition: ast.FunctionDef, one: BufferOf, source: SourceText, used: set[str], found: Written) -> None:
    def param(name: str | None, wish: str, what: int) -> str:
        if name is None:
            name = fresh(f"{one.name}_{wish}", used)
            found.params.append(BufferPart(name, one.name, what, one.is_array))
        return name

    array = param(one.array, "array", 0)
    pending = param(None, "late", 0) if one.is_array else one.name
    helpers = tuple(param(name, f"helper_{k}", 1 + k) for k, name in enumerate(one.helpers))
    taken = one.snapshots if one.max_delay else ()  # where nothing is late, the helpers themselves are given
    snapshots = tuple(param(None, f"snapshot_{k}", 1 + of) for k, of in enumerate(taken))
    if not one.is_array and one.max_delay:
        found.params.append(BufferPart(one.name, one.name, 0, one.is_array))
    writer = _Writer(one, array, pending, helpers, snapshots, source)
    if one.apply is not None:
        function = one.apply.function
        writer.whole, writer.first = (fresh(f"{one.name}_{k}", used) for k in ("applied", "value"))
        writer.results = results_of(locate(function), len(one.helpers))
    writer.loops = _loops_with_updates(definition, one.name)
    definition.body = [writer.visit(statement) for statement in definition.body]
    if writer.span is None:
        return  # neither read nor written
    if one.apply is not None:
        function = one.apply.function
        found.functions[writer.whole] = function
        found.functions[writer.first] = again = FunctionType(
            function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
        )
        found.firsts.add(again)
    if one.max_delay == 0:
        return
    found.buffered.append(
        Buffered(
            name=pending,
            array=array,
            source=f"{one.name}",
            helpers=helpers,
            snapshots=snapshots,
            snapshot_of=one.snapshots,
            apply=writer.whole or None,
            results=writer.results,
            max_delay=one.max_delay,
            deterministic=one.deterministic,
            sending=one.sending,
            span=writer.span,
        )
    )


def _loops_with_updates(definition: ast.FunctionDef, name: str) -> set[int]:
    """The identities of the `for`s that a buffer is updated in: what they read of its array may have updates that are
    not applied yet, also beside an inner `for` with the updates, as all may be planned as one loop."""
    return {
        id(loop)
        for loop in ast.walk(definition)
        if isinstance(loop, ast.For)
        and any(isinstance(node, ast.AugAssign) and _is_part_of(node.target, name) for node in ast.walk(loop))
    }


def _is_part_of(target: ast.expr, name: str) -> bool:
    return isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name) and target.value.id == name


class _Writer(ast.NodeTransformer):
    """`whole` and `first` are names for `apply`, empty where it is the sum. `loops` are the `for`s with updates; a
    node is in `depth` of them, and in none a worker has no updates of its own."""

    whole = first = ""
    results = 1
    loops: Collection[int] = ()
    depth = 0
    span: Span | None = None

    def __init__(
        self,
        given: BufferOf,
        array: str,
        pending: str,
        helpers: tuple[str, ...],
        snapshots: tuple[str, ...],
        source: SourceText,
    ) -> None:
        self.given, self.array, self.pending = given, array, pending
        self.helpers, self.snapshots, self.source = helpers, snapshots, source

    def refuse(self, node: ast.expr | ast.stmt, what: str, hint: str) -> Exception:
        return unsupported(what, span_of(node, self.source), self.source, hint=hint, is_for_numba=False)

    def note(self, node: ast.expr | ast.stmt) -> None:
        self.span = self.span or span_of(node, self.source)

    def visit_For(self, node: ast.For) -> ast.stmt:
        node.iter = self.visit(node.iter)
        self.depth += id(node) in self.loops
        node.body = [self.visit(statement) for statement in node.body]
        self.depth -= id(node) in self.loops
        node.orelse = [self.visit(statement) for statement in node.orelse]
        return node

    # ------------------------------------------------------------ updates

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt:
        target = node.target
        name = self.given.name
        if not _is_part_of(target, name):
            self.refuse_written(node, target)
            self.generic_visit(node)
            return node
        assert isinstance(target, ast.Subscript)
        if not isinstance(node.op, ast.Add | ast.Sub):
            raise self.refuse(node, f"only updates `+=` and `-=` of `{name}` may be late", "write the update as a sum")
        self.note(node)
        if self.snapshots:
            self.check_element(target)
        node.value = self.visit(node.value)
        target.slice = self.visit(target.slice)
        if self.given.max_delay:
            target.value = ast.copy_location(ast.Name(self.pending, ast.Load()), target.value)
            return node
        return self.at_once(node, target)

    def at_once(self, node: ast.AugAssign, target: ast.Subscript) -> ast.stmt:
        """The update of the array itself: nothing is late."""
        target.value = ast.copy_location(ast.Name(self.array, ast.Load()), target.value)
        if not self.whole:
            return node
        self.check_element(target)
        update = node.value if isinstance(node.op, ast.Add) else ast.UnaryOp(ast.USub(), node.value)
        places = [self.at(name, target) for name in (self.array, *self.helpers)]
        snapshots = [self.at(self.helpers[k], target) for k in self.given.snapshots]
        call = ast.Call(ast.Name(self.whole, ast.Load()), [places[0], update, *places[1:], *snapshots], [])
        targets: list[ast.expr] = [self.at(name, target, ast.Store()) for name in (self.array, *self.helpers)]
        kept = targets[: self.results]
        whole: ast.expr = ast.Tuple(kept, ast.Store()) if len(kept) > 1 else kept[0]
        return ast.copy_location(ast.Assign([whole], call), node)

    def visit_Assign(self, node: ast.Assign) -> ast.stmt:
        for target in node.targets:
            self.refuse_written(node, target)
        self.generic_visit(node)
        return node

    def refuse_written(self, node: ast.Assign | ast.AugAssign, target: ast.expr) -> None:
        """Refuse a statement that writes an array with a buffer, a helper, or the buffer itself."""
        written = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
        for one in written:
            base = one.value if isinstance(one, ast.Subscript) else one
            if isinstance(base, ast.Name) and base.id in (self.given.name, self.array, *self.helpers):
                self.refuse_assigned(node, base.id)

    def refuse_assigned(self, node: ast.Assign | ast.AugAssign, name: str) -> None:
        is_own = name == self.given.name
        if not self.given.max_delay and not is_own:
            return
        what = f"`{name}` is assigned, and {'only its updates may be late' if is_own else 'has a buffer'}"
        late = self.given.name
        raise self.refuse(node, what, f"write `{late}[…] += …` or `{late}[…] -= …`, or give `{self.array}` no buffer")

    # ------------------------------------------------------------ reads

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        match node:
            case ast.Subscript(ast.Name(name), _, ast.Load()) if name == self.array:
                self.note(node)
                node.slice = self.visit(node.slice)
                return self.read(node) if self.given.max_delay and self.depth else node
        self.generic_visit(node)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        if isinstance(node.value, ast.Name) and node.attr in ("shape", "size", "ndim", "dtype"):
            if node.value.id == self.given.name:
                node.value.id = self.array
            return node
        self.generic_visit(node)
        return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        match node:
            case ast.Call(ast.Name("len"), [ast.Name(name)], []) if name in (self.array, self.given.name):
                node.args[0] = ast.copy_location(ast.Name(self.array, ast.Load()), node.args[0])
                return node
        self.generic_visit(node)
        return node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id == self.given.name and not self.given.is_array:
            hint = f"read `{self.given.array}`" if self.given.array else "give the array to the function, and read that"
            raise self.refuse(node, f"`{node.id}` is a buffer, and can only be updated", hint)
        if node.id == self.array and isinstance(node.ctx, ast.Load) and self.given.max_delay and self.depth:
            self.note(node)
            return self.read(node)
        return node

    def read(self, node: ast.Subscript | ast.Name) -> ast.expr:
        """What a worker reads: the value with its own updates."""
        own = self.at(self.pending, node)
        if not self.whole:
            return ast.copy_location(ast.BinOp(node, ast.Add(), own), node)
        self.check_element(node)
        others = [self.at(name, node) for name in (*self.helpers, *self.snapshots)]
        call = ast.Call(ast.Name(self.first, ast.Load()), [deepcopy(node), own, *others], [])
        test = ast.Compare(self.at(self.pending, node), [ast.NotEq()], [ast.Constant(0)])
        return ast.copy_location(ast.IfExp(test, call, node), node)

    def check_element(self, node: ast.Subscript | ast.Name) -> None:
        index = node.slice if isinstance(node, ast.Subscript) else None
        parts = index.elts if isinstance(index, ast.Tuple) else [index]
        if index is None or len(parts) < self.given.ndim or any(isinstance(part, ast.Slice) for part in parts):
            what = f"a part of `{self.array}` is used, whose updates are applied by a function of one element"
            raise self.refuse(node, what, "use its elements one by one, in a loop")

    def at(self, name: str, node: ast.Subscript | ast.Name, ctx: ast.expr_context | None = None) -> Any:
        """Another array at the same place."""
        found = ast.copy_location(ast.Name(name, ast.Load()), node)
        if isinstance(node, ast.Name):
            return found
        return ast.copy_location(ast.Subscript(found, deepcopy(node.slice), ctx or ast.Load()), node)


def results_of(apply: Located, helpers: int) -> int:
    """How many of the array and the helpers `apply` gives new values of. UnsupportedLoopError where that is not one
    number, or more than there are."""
    returned = [node for node in ast.walk(apply.definition) if isinstance(node, ast.Return) and node.value is not None]
    counts = {len(one.value.elts) if isinstance(one.value, ast.Tuple) else 1 for one in returned}
    if len(counts) == 1 and 1 <= max(counts) <= 1 + helpers:
        return counts.pop()
    node = returned[0] if returned else apply.definition
    what = "`apply` of a buffer returns " + (" or ".join(map(str, sorted(counts))) or "no") + " values"
    hint = "return the new value of the element, or a tuple of that and of the new values of the helpers"
    raise unsupported(what, span_of(node, apply.source), apply.source, hint=hint)


def with_first_result(definition: ast.FunctionDef) -> ast.FunctionDef:
    """The function with the first of the values that it returns."""
    for node in ast.walk(definition):
        if isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple):
            node.value = node.value.elts[0]
    return definition
