"""Where a tile looks whether it is to be left: between strips of those of its loops that may take long.

This is done on the text of the tile, which all loops come to, whichever strategy they are from. Work is counted in
operations, roughly. A loop that does few is left as it is. Any other innermost one is taken apart into strips that do
about `WORK`, and the tile looks up before each: at its control row, one load and one branch. What is inside of a strip
is as it was, so that innermost loops are vectorized as before. A loop around others looks up in each trip: in strips
LLVM no longer sees where its variable lies, and the skewed buffers of seidel-2d took 1.7 times as long.

The text depends on the sizes of a call in one way only: loops inside of others of at most `SHORT` operations at these
sizes, with all that is in them, and rows of at most as many elements, do not look up. For longer ones the kernel is
another one. Of integer arguments only the power of two below them counts, so that a function that is called with many
values of one has few kernels.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence

from orion.dataclass import dataclass, field
from orion.kernel.emit.names import DTYPES
from orion.kernel.emit.stop_bounds import Bounds, Bracket
from orion.kernel.emit.writer import INDENT
from orion.source import Span

WORK = 2**24
"""How many operations are done between two looks: some 5 to 50 ms."""

SHORT = 2**20
"""How many a loop inside another one does at most that is left as it is."""

LONGEST = 2**62
"""What the variable of a loop changes by in a strip at most."""

FEW = 2**16
"""Those of at most as many operations count as this, so that what is around them looks up less often."""

LOOK = 8
"""What a loop that looks up by itself counts in the one around it."""

DOUBLED = 40
"""Innermost loops of at most as many lines are there twice, as they were and in strips: few trips have no strips to set
up then. Those that seldom run are not."""

UNROLLED = 32
"""Trips that a loop inside of an innermost one may have: LLVM writes them out, and makes vectors of what is around."""

CALL, DIVISION, VECTOR = 20, 8, 64
CHEAP = frozenset(
    (*DTYPES, "min", "max", "abs", "floor_divided", "add_to_sum", "range", "held_stop", "likely", "is_inside")
)

Line = tuple[str, Span | None]


@dataclass(frozen=True, slots=True)
class InMemory:
    """An array in memory: its rank, and the number of its elements where that is known."""

    rank: int
    size: int | None


@dataclass(frozen=True, slots=True)
class TileNames:
    """What names in the text of a tile stand for: arrays; functions whose arguments are registers or rows of at most
    256 elements; numbers of which something is known at these sizes, by their text ("n", "a.shape[0]")."""

    arrays: Mapping[str, InMemory]
    vectors: frozenset[str]
    numbers: Mapping[str, Bracket]


def with_stops(lines: Sequence[Line], names: TileNames, fresh: Callable[[str], str]) -> list[Line]:
    """The lines of a tile's function with looks in its loops. `fresh` makes new names."""
    (function,) = ast.parse("\n".join(text for text, _ in lines)).body
    assert isinstance(function, ast.FunctionDef)
    finder = _Finder(Bounds(function, names.numbers), names)
    finder.of_block(function.body, is_inside=False)
    return _edited(lines, finder.stops, fresh)


# ------------------------------------------------------------ which loops


@dataclass(frozen=True, slots=True)
class _Stop:
    """A loop that looks up once in so many trips. `is_doubled`: it stands there as it was, too, for few trips, which
    are what it mostly has where it `is_inside` of another one."""

    loop: ast.For | ast.While
    trips: int
    is_doubled: bool = False
    is_inside: bool = False


@dataclass
class _Finder:
    """Counts what statements do between two looks at most, and finds the loops that are to look up."""

    bounds: Bounds
    names: TileNames
    stops: list[_Stop] = field(default_factory=list)
    parts: dict[ast.AST, int] = field(default_factory=dict)
    is_seldom: bool = False
    known: dict[ast.stmt, int | None] = field(default_factory=dict)

    def of_block(self, body: Sequence[ast.stmt], is_inside: bool) -> int:
        """The operations of statements, which may be inside of a loop."""
        return sum(self.of_statement(statement, is_inside) for statement in body)

    def of_statement(self, statement: ast.stmt, is_inside: bool) -> int:
        match statement:
            case ast.For():
                return self.of_for(statement, is_inside)
            case ast.While():
                self.of_block(statement.body, is_inside=True)
                self.stops.append(_Stop(statement, 1))
                return LOOK
            case ast.If(test, body, orelse):
                found = self.of_part(test) + self.of_block(body, is_inside)
                before, self.is_seldom = self.is_seldom, self.is_seldom or _is_likely(test)
                found += self.of_block(orelse, is_inside)
                self.is_seldom = before
                return found
            case _:
                return self.of_part(statement)

    def of_for(self, loop: ast.For, is_inside: bool) -> int:
        before = len(self.stops)
        once = 1 + self.of_block(loop.body, is_inside=True)
        inside = (node for one in loop.body for node in ast.walk(one) if isinstance(node, ast.For | ast.While))
        is_innermost = all(map(_is_unrolled, inside))
        trips = self.bounds.fixed_trips(loop)
        if trips is not None and trips * once <= WORK:
            return trips * once
        all_now = self.now(loop) if is_inside else None
        if all_now is not None and all_now <= SHORT:
            del self.stops[before:]
            return FEW if all_now <= FEW else SHORT
        looks_inside = len(self.stops) > before
        step = self.bounds.step(loop)
        strip = 1 if looks_inside or not is_innermost or not step else max(1, min(WORK // once, LONGEST // abs(step)))
        is_short = (loop.end_lineno or 0) - loop.lineno <= DOUBLED
        is_doubled = is_innermost and strip > 1 and is_short and not self.is_seldom
        self.stops.append(_Stop(loop, 1 << (strip.bit_length() - 1), is_doubled, is_inside))
        return FEW if is_innermost else LOOK

    def now(self, statement: ast.stmt) -> int | None:
        """The operations of a statement at these sizes; None where it holds a loop of unknown length. Each loop around
        asks for them."""
        if statement not in self.known:
            self.known[statement] = self._now(statement)
        return self.known[statement]

    def _now(self, statement: ast.stmt) -> int | None:
        match statement:
            case ast.For(body=body):
                trips = self.bounds.trips(statement)
                each = self.all_now(body)
                return None if trips is None or each is None else trips * (1 + each)
            case ast.While():
                return None
            case ast.If(test, body, orelse):
                parts = self.all_now(body), self.all_now(orelse)
                return None if parts[0] is None or parts[1] is None else self.of_part(test) + parts[0] + parts[1]
            case _:
                return self.of_part(statement)

    def all_now(self, body: Sequence[ast.stmt]) -> int | None:
        """The same of several statements."""
        found = [self.now(statement) for statement in body]
        return None if None in found else sum(one for one in found if one is not None)

    def of_part(self, node: ast.AST) -> int:
        """The operations of something without loops; each loop around asks for them."""
        if node not in self.parts:
            self.parts[node] = sum(self.of_node(part) for part in ast.walk(node)) + self.of_rows(node)
        return self.parts[node]

    def of_node(self, node: ast.AST) -> int:
        match node:
            case ast.Call(func=ast.Name(id=name)) if name in self.names.vectors:
                return VECTOR
            case ast.Call(func=ast.Name(id=name)) if name in CHEAP:
                return 1
            case ast.BinOp(op=ast.Pow()) | ast.Call():
                return CALL
            case ast.BinOp(op=ast.Div() | ast.Mod() | ast.FloorDiv()):
                return DIVISION
            case ast.BinOp() | ast.Subscript() | ast.Compare() | ast.UnaryOp():
                return 1
            case _:
                return 0

    def of_rows(self, node: ast.AST) -> int:
        """The operations on rows and whole arrays: no more is said than whether they are many."""
        sizes = [self.names.arrays[name].size or 0 for name in self.rows(node)]
        return 0 if not sizes else SHORT if max(sizes) <= SHORT else WORK

    def rows(self, node: ast.AST) -> Iterator[str]:
        """The arrays that are used otherwise than element by element."""
        arrays = self.names.arrays
        match node:
            case ast.Call(func=ast.Name(id=name)) if name in self.names.vectors:
                return
            case ast.Attribute(attr="shape" | "size"):
                return
            case ast.Subscript(value=ast.Name(id=name), slice=index) if name in arrays:
                parts = index.elts if isinstance(index, ast.Tuple) else [index]
                if len(parts) < arrays[name].rank or any(isinstance(part, ast.Slice) for part in parts):
                    yield name
                yield from self.rows(index)
            case ast.Name(id=name) if name in arrays:
                yield name
            case _:
                for part in ast.iter_child_nodes(node):
                    yield from self.rows(part)


def _is_likely(test: ast.expr) -> bool:
    match test:
        case ast.Call(func=ast.Name("likely")):
            return True
        case _:
            return False


def _is_unrolled(loop: ast.For | ast.While) -> bool:
    """Whether it has so few trips, always, that LLVM writes them out."""
    match loop:
        case ast.For(iter=ast.Call(ast.Name("range"), [ast.Constant(int(trips))])):
            return trips <= UNROLLED
        case _:
            return False


# ------------------------------------------------------------ their text


def _edited(lines: Sequence[Line], stops: Sequence[_Stop], fresh: Callable[[str], str]) -> list[Line]:
    """The lines with loops that look up. What is inside of strips is one level deeper."""
    deeper = [0] * (len(lines) + 1)
    heads: dict[int, list[Line]] = {}
    tails: dict[int, list[Line]] = {}
    for stop in sorted(stops, key=lambda stop: stop.loop.lineno):
        first, last = stop.loop.lineno - 1, stop.loop.end_lineno or 0
        (text, span), depth = lines[first], stop.loop.col_offset // len(INDENT) + deeper[first]
        look = [(1, "if is_alarmed(control) and is_to_leave(control):"), (2, "return")]
        plain: list[Line] = []
        before: list[Indented] = []
        if stop.trips == 1:
            more, head, tail = 0, [(0, text.strip()), *look], []
        else:
            more = int(stop.is_doubled)
            if stop.is_doubled:  # each line keeps its place in the user's source
                plain = [(INDENT * (deeper[first] + 1) + line, place) for line, place in lines[first + 1 : last]]
            before, over, own = _strips(stop, fresh)
            head = [*over, *((more + own_depth, line) for own_depth, line in [*look, own])]
            tail = [(more + own_depth, line) for own_depth, line in OUT] if _breaks(stop.loop.body) else []
            deeper[first + 1 : last] = [count + 1 + more for count in deeper[first + 1 : last]]
        parts = before, head, tail
        start, strips, end = ([(INDENT * (depth + by) + line, span) for by, line in part] for part in parts)
        heads[first] = [*start, *plain, *strips]
        tails[last - 1] = [*end, *tails.get(last - 1, [])]
    found: list[Line] = []
    for number, (text, span) in enumerate(lines):
        found += heads.get(number, [(INDENT * deeper[number] + text if text else "", span)])
        found += tails.get(number, [])
    return found


Indented = tuple[int, str]
"""A line with how much deeper it stands than the loop."""

OUT: list[Indented] = [(1, "else:"), (2, "continue"), (1, "break")]
"""What follows a loop in a strip where a `break` of it leaves the loop over strips too."""


def _strips(stop: _Stop, fresh: Callable[[str], str]) -> tuple[list[Indented], list[Indented], Indented]:
    """What stands before the body of the loop as it was, for as many trips as a strip has, where that is doubled; the
    loop over strips; and the head of the loop in one."""
    loop = stop.loop
    assert isinstance(loop, ast.For)
    assert isinstance(loop.iter, ast.Call)
    assert isinstance(loop.target, ast.Name)
    parts = [ast.unparse(part) for part in loop.iter.args]
    start, end, step = ["0", *parts, "1"] if len(parts) == 1 else [*parts, "1"][:3]
    name, length = loop.target.id, stop.trips * int(step)
    first, last, nearer = fresh(f"{name}_from"), fresh(f"{name}_last"), "min" if length > 0 else "max"
    stepped = "" if step == "1" else f", {step}"
    over = f"for {first} in range({start}, {last}, {length}):"
    if not stop.is_doubled:
        stop_here = f"{first} + {nearer}({length}, {last} - {first})"
        return (
            [],
            [(0, f"{last} = int64({end})"), (0, over)],
            (1, f"for {name} in range({first}, {stop_here}{stepped}):"),
        )
    # LLVM unrolls the loop if its stop is written so; the range is longer than a strip here, so that nothing overflows
    stop_here = f"{nearer}({last} - {length}, {first}) + {length}".replace("- -", "+ ").replace("+ -", "- ")
    own = (1, f"for {name} in range({first}, {stop_here}{stepped}):")
    begin = fresh(f"{name}_begin")
    span = f"{last} - {begin} <= {length}" if length > 0 else f"{begin} - {last} <= {-length}"
    span = f"likely({span})" if stop.is_inside else span
    plain = (1, f"for {name} in range({begin}, {last}{stepped}):")
    before = [(0, f"{begin} = int64({start})"), (0, f"{last} = int64({end})"), (0, f"if {span}:"), plain]
    return before, [(0, "else:"), (1, over.replace(f"({start},", f"({begin},"))], own


def _breaks(body: Sequence[ast.stmt]) -> bool:
    """Whether statements leave the loop that they are the body of."""
    for statement in body:
        match statement:
            case ast.Break():
                return True
            case ast.If(_, first, second) if _breaks(first) or _breaks(second):
                return True
    return False
