"""Random nests whose loops make one trip, stand in rounds, or share a line or a place with others.

A nest is changed here as text: statements get loops of one trip, or serial rounds, around them; a statement moves to a
helper function that is called twice; array assignments and comprehensions follow one another on one line; the name of a
row is rebound in an inner loop. What the undecorated function then computes is what the compiled one has to.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from tests.oracles.nests import HELPER, ArraySpec, Nest
from tests.oracles.reduce import runs
from tests.oracles.spelling import Choose

ONE = "one"
"""An integer argument that is 1 in every call."""

OUT = "Y"
"""An array argument that takes rows, in the shape of the array that the rows come from."""

CHANGES = (1, 1, 2, 2, 3)
ROUNDS = (1, 1, 2, 2, 3)


def placed(nest: Nest, choose: Choose) -> Nest:
    """The nest with one to three such changes; the nest as it was where they leave nothing that can be run."""
    tree = ast.parse(nest.source)
    changed = _Changed(nest, tree, choose)
    for _ in range(choose(CHANGES)):
        choose(FORMS)(changed)
    found = changed.nest(_on_lines(ast.fix_missing_locations(tree), choose))
    return found if runs(found) else nest


@dataclass
class _Changed:
    """The tree of a nest that is being changed, and the arguments that it gets."""

    given: Nest
    tree: ast.Module
    choose: Choose
    arrays: dict[str, ArraySpec] = field(default_factory=dict)
    needs_one: bool = False
    loops: int = 0

    @property
    def function(self) -> ast.FunctionDef:
        found = self.tree.body[-1]
        assert isinstance(found, ast.FunctionDef)
        return found

    def nest(self, source: str) -> Nest:
        integers = dict(self.given.integers) | ({ONE: (1, 1)} if self.needs_one else {})
        return replace(self.given, source=source, arrays={**self.given.arrays, **self.arrays}, integers=integers)

    def variable(self) -> str:
        self.loops += 1
        return f"o{self.loops}"

    def one(self) -> str:
        """The text of an integer that is 1."""
        if self.choose((True, False)):
            return "1"
        if not self.needs_one:
            self.needs_one = True
            self.function.args.args.append(ast.arg(ONE))
        return ONE

    def whole_loops(self) -> list[int]:
        """The positions of the loops at the top level of the function."""
        return [at for at, statement in enumerate(self.function.body) if isinstance(statement, ast.For)]

    def insert(self, lines: Sequence[str]) -> None:
        """Put statements before the end of the function, or before one of its loops."""
        body = self.function.body
        end = len(body) - isinstance(body[-1], ast.Return)
        at = self.choose((end, end, *self.whole_loops()))
        body[at:at] = ast.parse("\n".join(lines)).body

    def like(self, name: str) -> str:
        """An array of the same dtype and rank; the name itself where it is none of an array."""
        known = self.given.arrays
        found = known.get(name)
        if found is None:
            return name
        same = (found.dtype, len(found.small))
        return str(self.choose([one for one, spec in known.items() if (spec.dtype, len(spec.small)) == same]))

    def rows(self) -> str | None:
        """An array of rows, in whose shape there is another; None where there is none."""
        planes = [name for name in self.floats(2) if name in self.given.arrays]
        if planes and OUT not in self.arrays:
            self.arrays[OUT] = self.given.arrays[self.choose(planes)]
            self.function.args.args.append(ast.arg(OUT))
        return next((name for name in planes if self.given.arrays[name] is self.arrays[OUT]), None)

    def floats(self, rank: int) -> list[str]:
        known = {**self.given.arrays, **self.arrays}
        return [name for name, spec in known.items() if spec.dtype == "float64" and len(spec.small) == rank]


def once(changed: _Changed) -> None:
    """Put a loop of one trip around some statements; it may stand for the variable of a loop around it."""
    blocks = [*_blocks(changed.function, ())]
    block, variables = changed.choose(blocks)
    last = len(block) - isinstance(block[-1], ast.Return)
    if not last:
        return
    first = changed.choose(range(last))
    end = changed.choose(range(first + 1, last + 1))
    name, body = changed.variable(), block[first:end]
    value = changed.choose(("0", "0", "2", *variables, *variables))
    space = changed.choose(
        (f"{value}, {value} + {changed.one()}", f"{value} + {changed.one()}, {value}, -1", f"{value}, {value} + 2, 2")
    )
    space = changed.one() if value == "0" and changed.choose((True, False)) else space
    if value in variables and value not in _assigned(body) and changed.choose((True, False)):
        body = [_renamed(statement, value, name) for statement in body]
    block[first:end] = [_loop(f"for {name} in range({space}):", body)]


def single(changed: _Changed) -> None:
    """Leave one trip of a loop: its first."""
    loops = [node for node in ast.walk(changed.function) if isinstance(node, ast.For) and _is_counted(node)]
    if not loops:
        return
    call = changed.choose(loops).iter
    assert isinstance(call, ast.Call)
    start = ast.unparse(call.args[0]) if len(call.args) > 1 else "0"
    call.args = [ast.parse(part, mode="eval").body for part in (start, f"{start} + {changed.one()}")]


def rounds(changed: _Changed) -> None:
    """Put serial rounds around a loop, and what follows it."""
    loops, body = changed.whole_loops(), changed.function.body
    if not loops:
        return
    first = changed.choose(loops)
    end = changed.choose([first + 1, *(at + 1 for at in loops if at > first)])
    name, count = changed.variable(), changed.choose(ROUNDS)
    inside = body[first:end]
    text = changed.one() if count == 1 else str(count)
    if changed.choose((True, True, False)):
        body[first:end] = [_loop(f"for {name} in range({text}):", inside)]
    else:
        step = ast.parse(f"{name} -= 1").body
        body[first:end] = [*ast.parse(f"{name} = {text}").body, _loop(f"while {name} > 0:", [*inside, *step])]


def twice(changed: _Changed) -> None:
    """Move a statement, mostly a loop, to a helper function, and call that twice: also with another array."""
    if len(changed.tree.body) > 1:
        return
    places = [
        (block, at)
        for block, _ in _blocks(changed.function, ())
        for at, statement in enumerate(block)
        if not any(isinstance(node, ast.Return | ast.Break | ast.Continue) for node in ast.walk(statement))
    ]
    loops = [(block, at) for block, at in places if isinstance(block[at], ast.For)]
    block, at = changed.choose((*loops, *loops, *places))
    known = {argument.arg for argument in changed.function.args.args} | _assigned(changed.function.body)
    used = [name for name in _names(block[at]) if name in known - _assigned([block[at]])]
    others = [changed.like(name) if changed.choose((False, False, True)) else name for name in used]
    (helper,) = ast.parse(f"def {HELPER}({', '.join(used)}):\n    pass").body
    assert isinstance(helper, ast.FunctionDef)
    helper.body = [block[at]]
    calls = [f"{HELPER}({', '.join(each)})" for each in (used, others)]
    block[at : at + 1] = ast.parse("\n".join(calls)).body
    if changed.choose((False, False, True)):
        block[at : at + 2] = [_loop(f"for {changed.variable()} in range({changed.one()}):", block[at : at + 2])]
    changed.tree.body.insert(0, helper)


def assigned(changed: _Changed) -> None:
    """Assign slices of arrays, of which each is a loop or several, one after the other."""
    changed.insert([_slices(changed) for _ in range(changed.choose((1, 2, 2, 3)))])


def _slices(changed: _Changed) -> str:
    planes = changed.floats(2)
    if planes and changed.choose((True, False)):
        A = changed.choose(planes)
        return str(changed.choose((f"{A}[1:, 1:] = 0.5 * {A}[:-1, :-1]", f"{A}[:, 0] = 0.5 * {A}[:, 1]",
                                   f"{A}[:] = {A}[::-1]", f"{A}[1:] += 0.5 * {A}[:-1]")))  # fmt: skip
    rows = changed.floats(1)
    if not rows:
        return "pass"
    a = changed.choose(rows)
    return str(changed.choose((f"{a}[1:] = {a}[:-1]", f"{a}[:] = 0.5 * {a}", f"{a}[:-1] += 0.5 * {a}[1:]",
                               f"{a}[:] = {a}[::-1]")))  # fmt: skip


def comprehended(changed: _Changed) -> None:
    """Fill an array from a list comprehension."""
    rows = changed.floats(1)
    if not rows:
        return
    a, name, at = changed.choose(rows), changed.variable(), changed.variable()
    values = f"{name} = [0.5 * {a}[{at}] for {at} in range({changed.choose((f'len({a})', changed.one()))})]"
    changed.insert([values, f"for {at} in range(len({name})):\n    {a}[{at}] = {name}[{at}]"])


def anew(changed: _Changed) -> None:
    """Rebind the name of a row in an inner loop, and store the row in another array, or in its own."""
    A, i, k = changed.rows(), changed.variable(), changed.variable()
    if A is None:
        return
    value = changed.choose(("row * 0.5", f"row * 0.5 + {A}[{i}]", f"0.5 * row + {k}", "row[::-1] - 1.0"))
    lines = [f"for {i} in range(len({A})):", f"    row = {A}[{i}]"]
    lines += [f"    if {A}[{i}, 0] > 0:", f"        row = {A}[0]"] if changed.choose((True, False, False)) else []
    lines += [f"    for {k} in range({changed.choose(('2', '3', changed.one()))}):", f"        row = {value}"]
    changed.insert([*lines, f"    {changed.choose((OUT, OUT, A))}[{i}] = row"])


def parts(changed: _Changed) -> None:
    """Write to a part of a row, either of which is one of two."""
    A, i = changed.rows(), changed.variable()
    if A is None or min(changed.arrays[OUT].small) < 3:
        return
    lines = [f"for {i} in range(len({A}) - 1):", f"    row = {A}[{i}]", f"    if {A}[{i}, 0] > 0:"]
    lines += [f"        row = {A}[{i} + {changed.one()}]", "    row_part = row[1:]", f"    if {A}[{i}, 1] > 0:"]
    lines += ["        row_part = row[2:]", f"    {changed.choose(('row_part[0] = 1.0', 'row_part *= 0.5'))}"]
    changed.insert([*lines, f"    {OUT}[{i}] = row"])


FORMS: tuple[Callable[[_Changed], None], ...] = (
    once, once, once, single, rounds, rounds, twice, twice, assigned, assigned, comprehended,
    anew, parts,
)  # fmt: skip


# ---------------------------------------------------------------- parts of the tree


def _loop(head: str, body: list[ast.stmt]) -> ast.stmt:
    (loop,) = ast.parse(f"{head}\n    pass").body
    assert isinstance(loop, ast.For | ast.While)
    loop.body = body
    return loop


def _blocks(node: ast.stmt, variables: tuple[str, ...]) -> Iterator[tuple[list[ast.stmt], tuple[str, ...]]]:
    """The blocks of a statement, each with the variables of the loops that it is in."""
    if isinstance(node, ast.For) and isinstance(node.target, ast.Name):
        variables = (*variables, node.target.id)
    for block in (getattr(node, "body", []), getattr(node, "orelse", [])):
        if block:
            yield block, variables
            for statement in block:
                yield from _blocks(statement, variables)


def _assigned(body: Sequence[ast.stmt]) -> set[str]:
    nodes = (node for statement in body for node in ast.walk(statement))
    return {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def _names(node: ast.AST) -> list[str]:
    return list(dict.fromkeys(part.id for part in ast.walk(node) if isinstance(part, ast.Name)))


def _renamed(statement: ast.stmt, old: str, new: str) -> ast.stmt:
    found = copy.deepcopy(statement)
    for node in ast.walk(found):
        if isinstance(node, ast.Name) and node.id == old:
            node.id = new
    return found


def _is_counted(loop: ast.For) -> bool:
    return isinstance(loop.iter, ast.Call) and isinstance(loop.iter.func, ast.Name) and loop.iter.func.id == "range"


# ---------------------------------------------------------------- lines


def _on_lines(tree: ast.Module, choose: Choose) -> str:
    """The text of functions, with some loops of simple statements, and some of these that follow one another, on one
    line."""
    shared = choose((True, True, False))
    return "\n".join(line for function in tree.body for line in _lines(function, shared)) + "\n"


def _lines(statement: ast.stmt, shared: bool) -> list[str]:
    if not isinstance(statement, ast.FunctionDef | ast.For | ast.While | ast.If):
        return [ast.unparse(statement)]
    head = copy.copy(statement)
    head.body = [ast.Pass()]
    if not isinstance(head, ast.FunctionDef):
        head.orelse = []
    first = ast.unparse(head).splitlines()[0]
    lines = _headed(first, statement.body, shared and not isinstance(statement, ast.FunctionDef), shared)
    if not isinstance(statement, ast.FunctionDef) and statement.orelse:
        lines += _headed("else:", statement.orelse, shared, shared)
    return lines


def _headed(head: str, body: Sequence[ast.stmt], is_joined: bool, shared: bool) -> list[str]:
    """The lines of a block below its head; one line where all of it is simple and is to be joined."""
    parts = [_lines(statement, shared) for statement in body]
    simple = [not isinstance(statement, ast.For | ast.While | ast.If) for statement in body]
    if is_joined and all(simple):
        return [f"{head} {'; '.join(line for part in parts for line in part)}"]
    found: list[str] = []
    for at, part in enumerate(parts):
        if shared and at and simple[at] and simple[at - 1] and not isinstance(body[at], ast.Return):
            found[-1] += f"; {part[0]}"
        else:
            found += [f"    {line}" for line in part]
    return [head, *found]
