"""The kinds of mends. Each is right for all arguments, or does what its hint says in words; a mend that is not sure to
be so is none. Whether the loop is parallel then, the plan of the mended text says."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence

from orion.cli.mends.facts import (
    has_long_text,
    has_own_elements,
    is_at_top,
    is_changed_unseen,
    is_pure,
    loaded,
    stored,
    values_read,
    walked,
)  # fmt: skip
from orion.cli.mends.text import Edit, Source
from orion.dataclass import dataclass
from orion.debugging.source import read_outside
from orion.reasons import Hint, Reason


@dataclass(frozen=True, slots=True)
class Site:
    """A serial loop in its function, with the reasons that keep it so; whether a copy of an array would
    cost more than it gains."""

    source: Source
    function: ast.FunctionDef
    loop: ast.For
    reasons: tuple[Reason, ...]
    copy_costs_more: bool

    def fresh(self, name: str) -> str:
        """Return a name like this one that the function does not have."""
        return self.source.fresh(name, self.function)

    def hinted(self, hint: str) -> Iterator[tuple[Reason, str]]:
        """Yield the reasons with a hint, and what fills its gap."""
        pattern = re.compile(re.sub(r"\\\{\w+\\\}", r"(\\w+)", re.escape(hint), count=1))
        pattern = re.compile(re.sub(r"\\\{\w+\\\}", r"\\w+", pattern.pattern))
        for reason in self.reasons:
            found = pattern.fullmatch(reason.hint)
            if found is not None:
                yield reason, found[1] if pattern.groups else ""

    def before(self, text: str) -> Edit:
        """A statement before the loop."""
        at = self.source.line_start(self.loop.lineno)
        return Edit(at, at, f"{self.source.indentation(self.loop)}{text}{self.source.newline}")

    def after(self, text: str) -> Edit:
        """A statement after the loop."""
        at = self.source.line_end(self.loop.end_lineno or self.loop.lineno)
        begin = "" if self.source.text[:at].endswith(("\n", "\r")) else self.source.newline
        return Edit(at, at, f"{begin}{self.source.indentation(self.loop)}{text}{self.source.newline}")

    def renamed(self, node: ast.Name, name: str) -> Edit:
        """Another name in the place of one."""
        return Edit(self.source.start(node), self.source.end(node), name)


Edits = list[Edit]


# ------------------------------------------------------------ elements that many iterations set


def scalar_stored_afterwards(site: Site) -> Edits | None:
    """`W[0] = v` in the loop: a scalar that the loop sets, stored after it. Nothing else in the loop uses the array."""
    for _, array in site.hinted(Hint.ELEMENTS):
        uses = [node for node in ast.walk(site.loop) if isinstance(node, ast.Name) and node.id == array]
        targets = [node for node in walked([site.loop]) if isinstance(node, ast.Assign) for node in node.targets]
        elements = [one for one in targets if isinstance(one, ast.Subscript) and one.value in uses]
        leaves = any(isinstance(node, ast.Return | ast.Raise | ast.Assert) for node in ast.walk(site.loop))
        if not uses or len(elements) != len(uses) or site.loop.orelse or leaves:
            continue
        if is_changed_unseen(site.function, {array}):
            continue
        places = {ast.dump(one.slice) for one in elements}
        place = elements[0].slice
        if len(places) > 1 or loaded(place) & stored(site.loop) or not is_pure(place) or _has_slice(place):
            continue
        name = site.fresh(f"{array}_last")
        element = site.source.of(elements[0])
        new = [Edit(site.source.start(one), site.source.end(one), name) for one in elements]
        return [site.before(f"{name} = {element}"), *new, site.after(f"{element} = {name}")]
    return None


def _has_slice(node: ast.expr) -> bool:
    return any(isinstance(one, ast.Slice) for one in ast.walk(node))


# ------------------------------------------------------------ values from before the loop


def copy_before_the_loop(site: Site) -> Edits | None:
    """`W[i] = W[i + 1]`: no iteration reads what another wrote before, so that it may read from a copy. Within an
    iteration nothing is written before it is read."""
    found: Edits = []
    if site.copy_costs_more:
        return None
    for array in {array for _, array in site.hinted(Hint.COPY)}:
        places = {
            (reason.spans[0].line, reason.spans[0].column) for reason, name in site.hinted(Hint.COPY) if name == array
        }
        body = _innermost(site.loop).body
        reads = [
            node.value
            for node in walked(body)
            if isinstance(node, ast.Subscript)
            and isinstance(node.value, ast.Name)
            and node.value.id == array
            and isinstance(node.ctx, ast.Load)
            and (node.lineno, node.col_offset) in places
        ]
        if not reads or any(_may_be_written_before(node, array, body) for node in reads):
            return None
        if is_changed_unseen(site.function, {array}):
            return None
        name = site.fresh(f"{array}_before")
        names = [one for one in reads if isinstance(one, ast.Name)]
        found += [site.before(f"{name} = {array}.copy()"), *(site.renamed(one, name) for one in names)]
    return found or None


def _innermost(loop: ast.For) -> ast.For:
    while len(loop.body) == 1 and isinstance(loop.body[0], ast.For):
        loop = loop.body[0]
    return loop


def _may_be_written_before(read: ast.expr, array: str, body: Sequence[ast.stmt]) -> bool:
    """Whether an iteration may write the array, or one that a name is a view of, before it comes to this place."""
    for statement in body:
        if any(node is read for node in ast.walk(statement)):
            is_simple = isinstance(statement, ast.Assign | ast.AugAssign | ast.Expr)
            return not is_simple and array in stored(statement)
        if array in stored(statement):
            return True
    return True


# ------------------------------------------------------------ loops that are left early


def first_that_leaves(site: Site) -> Edits | None:
    """`if …: break`: the first iteration that leaves is found by a loop of its own, whose test reads nothing that the
    iterations before it change. The rest is then done up to that."""
    source, loop = site.source, site.loop
    if not any(True for _ in site.hinted(Hint.EXIT)) or loop.orelse or not isinstance(loop.target, ast.Name):
        return None
    at = next((k for k, one in enumerate(loop.body) if _leaves(one)), -1)
    stop = _stop_of(loop.iter)
    if at < 0 or stop is None or loop.body[0].lineno == loop.lineno:
        return None
    ahead, test, rest = loop.body[:at], loop.body[at], loop.body[at + 1 :]
    assert isinstance(test, ast.If)
    if test.body[0].lineno == test.lineno or len(test.body) != 1:
        return None
    if not rest or sum(isinstance(node, ast.Break | ast.Return) for one in loop.body for node in _own(one)) != 1:
        return None
    if not _may_go_ahead(site, ahead, test, rest, stop):
        return None
    return [Edit(source.line_start(loop.lineno), _end_of(site), _in_two_loops(site, ahead, test, rest, stop))]


def _leaves(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and not node.orelse and isinstance(node.body[0], ast.Break | ast.Return)


def _own(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a statement but for `break`s of loops inside of it."""
    if isinstance(node, ast.For | ast.While):
        yield from (one for one in ast.walk(node) if not isinstance(one, ast.Break))
    else:
        yield node
        for child in ast.iter_child_nodes(node):
            yield from _own(child)


def _stop_of(node: ast.expr) -> ast.expr | None:
    """The end of a range with step 1."""
    match node:
        case ast.Call(ast.Name("range"), [stop] | [_, stop] | [_, stop, ast.Constant(1)], []):
            return stop
        case _:
            return None


def _may_go_ahead(
    site: Site, ahead: Sequence[ast.stmt], test: ast.If, rest: Sequence[ast.stmt], stop: ast.expr
) -> bool:
    """Whether all tests may be made before the rest of any iteration."""
    assert isinstance(site.loop.target, ast.Name)
    set_ahead = {one.targets[0].id for one in ahead if _sets_a_name(one) and isinstance(one, ast.Assign)
                 and isinstance(one.targets[0], ast.Name)}  # fmt: skip
    own = {site.loop.target.id, *set_ahead}
    read = values_read(*ahead, test.test, site.loop.iter, stop)
    both = read & stored(*rest)
    is_free = all(has_own_elements(site.loop, name) for name in both) and not values_read(site.loop.iter) & both
    is_free = is_free and not is_changed_unseen(site.function, read - own)
    is_simple = all(map(_sets_a_name, ahead)) and is_pure(*ahead, test.test, site.loop.iter)
    is_unused = not own & stored(*rest) and not loaded(site.loop.iter) & own
    read_first: set[str] = set()
    for one in ahead:
        if loaded(one) & (set_ahead - read_first):
            return False
        read_first |= stored(one)
    leaving = test.body[0]
    if isinstance(leaving, ast.Return):
        is_last = not loaded(leaving) & set_ahead and is_pure(leaving)
    else:
        is_last = not read_outside(site.function, site.loop, lambda name: name not in own)
    alone = all(map(site.source.stands_alone, (*ahead, test, *rest, leaving)))
    alone = alone and site.loop.iter.end_lineno == site.loop.lineno
    return is_free and is_simple and is_unused and is_last and alone and not has_long_text(*ahead, test, *rest)


def _sets_a_name(node: ast.stmt) -> bool:
    return isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name)


def _end_of(site: Site) -> int:
    return site.source.line_end(site.loop.end_lineno or site.loop.lineno)


def _in_two_loops(site: Site, ahead: Sequence[ast.stmt], test: ast.If, rest: Sequence[ast.stmt], stop: ast.expr) -> str:
    source, loop = site.source, site.loop
    assert isinstance(loop.target, ast.Name)
    outer, inner = source.indentation(loop), source.indentation(loop.body[0])
    step, deeper = inner[len(outer) :], source.indentation(test.body[0])
    first, variable, leaving = site.fresh("first"), loop.target.id, test.body[0]
    last = loop.end_lineno or loop.lineno
    before = source.rows(loop.lineno, loop.body[0].lineno - 1)
    own_ahead = source.rows(loop.body[0].lineno, test.lineno - 1)
    leaves = source.rows(leaving.lineno, leaving.end_lineno or leaving.lineno)
    lines = [f"{outer}{first} = {source.of(stop)}", *before, *own_ahead]
    lines += [*source.rows(test.lineno, leaving.lineno - 1), f"{deeper}{first} = {variable}"]
    lines += [f"{deeper}break"] if isinstance(leaving, ast.Return) else leaves
    lines += [*before[:1], f"{inner}if {variable} < {first}:"]
    own_rest = source.rows((test.end_lineno or test.lineno) + 1, last)
    lines += [f"{step}{line}" if line.strip() else line for line in (*(own_ahead if ahead else ()), *own_rest)]
    if isinstance(leaving, ast.Return):
        lines += [f"{outer}if {first} < {source.of(stop)}:"]
        lines += [f"{inner}{variable} = {first}"] if variable in loaded(leaving) else []
        lines += [f"{inner}{line[len(deeper) :]}" for line in leaves]
    return "".join(f"{line}{source.newline}" for line in lines)


# ------------------------------------------------------------ names that are set in the loop


def other_loop_variable(site: Site) -> Edits | None:
    """`i = …` in the body: another name from there on. Nothing reads the variable after the loop."""
    loop = site.loop
    for _, name in site.hinted(Hint.VARIABLE):
        if not isinstance(loop.target, ast.Name) or loop.target.id != name:
            continue
        at = next((k for k, one in enumerate(loop.body) if name in stored(one)), -1)
        first = loop.body[at]
        is_read = read_outside(site.function, loop, lambda one: one != name)  # noqa: B023 - called at once
        if at < 0 or not _sets_a_name(first) or is_read:
            continue
        assert isinstance(first, ast.Assign)
        target, new = first.targets[0], site.fresh(f"{name}_new")
        later = [one for one in walked(loop.body[at + 1 :]) if isinstance(one, ast.Name) and one.id == name]
        return [site.renamed(one, new) for one in (target, *later) if isinstance(one, ast.Name)]
    return None


def other_name_than_the_bound(site: Site) -> Edits | None:
    """`for i in range(n): n = …`: another name, which has the value of the first before the loop."""
    for _, name in site.hinted(Hint.LAST):
        if not is_at_top(site.function, site.loop) or name in loaded(*site.loop.body):
            continue
        end = site.loop.end_lineno or site.loop.lineno
        inside = {id(node) for node in walked(site.loop.body)}
        uses = [one for one in ast.walk(site.function) if isinstance(one, ast.Name) and one.id == name]
        later = [one for one in uses if one.lineno > end or id(one) in inside]
        new = site.fresh(f"{name}_new")
        return [site.before(f"{new} = {name}"), *(site.renamed(one, new) for one in later)]
    return None


KINDS: dict[str, Callable[[Site], Edits | None]] = {
    "a scalar that the loop sets, stored after it": scalar_stored_afterwards,
    "reads from a copy made before the loop": copy_before_the_loop,
    "the first iteration that leaves is found in a loop of its own": first_that_leaves,
    "another name for what the body assigns to the loop variable": other_loop_variable,
    "another name than that of the bound": other_name_than_the_bound,
}
"""What mends do, in words. Of several for a loop the first is taken."""
