"""The kinds of mends. Each is right for all arguments, or does what its hint says in words; a mend that is not sure to
be so is none. Whether the loop is parallel then, the plan of the mended text says."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence

from orion.cli.mends.aliases import elements_changed, has_another_name, is_changed_unseen
from orion.cli.mends.facts import (
    has_long_text,
    has_own_elements,
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

    def renamed(self, node: ast.Name, name: str) -> Edit:
        """Another name in the place of one."""
        return Edit(self.source.start(node), self.source.end(node), name)


Edits = list[Edit]


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
        if is_changed_unseen(site.function, {array}) or has_another_name(site.function, {array}):
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
    is_free = is_free and not has_another_name(site.function, elements_changed(site.loop))
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
    alone = alone and _can_be_indented(site, leaving) and not has_long_text(*ahead, test, *rest)
    return is_free and is_simple and is_unused and is_last and alone


def _can_be_indented(site: Site, leaving: ast.stmt) -> bool:
    """Whether no line stands left of the statement that it continues: what is cut from lines is their indentation."""
    source, loop = site.source, site.loop
    for first, last, begin in (
        (loop.body[0].lineno, loop.end_lineno or loop.lineno, source.indentation(loop.body[0])),
        (leaving.lineno, leaving.end_lineno or leaving.lineno, source.indentation(leaving)),
    ):
        if any(line.strip() and not line.startswith(begin) for line in source.rows(first, last)):
            return False
    return not source.indentation(loop.body[0]).removeprefix(source.indentation(loop)).strip()


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
        if at < 0 or not _sets_a_name(first) or is_read or loop.orelse:
            continue
        assert isinstance(first, ast.Assign)
        target, new = first.targets[0], site.fresh(f"{name}_new")
        later = [one for one in walked(loop.body[at + 1 :]) if isinstance(one, ast.Name) and one.id == name]
        return [site.renamed(one, new) for one in (target, *later) if isinstance(one, ast.Name)]
    return None


def other_name_than_the_bound(site: Site) -> Edits | None:
    """`for i in range(n): n = …`: another name, which has the value of the first before the loop. The loop stands
    directly in the function, and the first has a value there on every path."""
    for _, name in site.hinted(Hint.LAST):
        if not _has_a_value(site, name) or name in loaded(*site.loop.body) or _is_bound_otherwise(site, name):
            continue
        end = site.loop.end_lineno or site.loop.lineno
        inside = {id(node) for node in walked(site.loop.body)}
        uses = [one for one in ast.walk(site.function) if isinstance(one, ast.Name) and one.id == name]
        later = [one for one in uses if one.lineno > end or id(one) in inside]
        new = site.fresh(f"{name}_new")
        return [site.before(f"{new} = {name}"), *(site.renamed(one, new) for one in later)]
    return None


def _has_a_value(site: Site, name: str) -> bool:
    """Whether a loop stands directly in its function, and a name has a value before it on every path."""
    function, given = site.function, site.function.args
    at = next((k for k, one in enumerate(function.body) if one is site.loop), -1)
    arguments = {one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)}
    before = [one.targets for one in function.body[: max(at, 0)] if isinstance(one, ast.Assign)]
    is_set = any(isinstance(one, ast.Name) and one.id == name for targets in before for one in targets)
    return at >= 0 and (name in arguments or is_set)


def _is_bound_otherwise(site: Site, name: str) -> bool:
    """Whether another name would not do: the loop variable has it, an `else` may read it, or something keeps names."""
    keep = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda | ast.Global | ast.Nonlocal | ast.Delete
    is_kept = any(isinstance(node, keep) for node in walked(site.function.body))
    return is_kept or bool(site.loop.orelse) or name in stored(site.loop.target)


KINDS: dict[str, Callable[[Site], Edits | None]] = {
    "reads from a copy made before the loop": copy_before_the_loop,
    "the first iteration that leaves is found in a loop of its own": first_that_leaves,
    "another name for what the body assigns to the loop variable": other_loop_variable,
    "another name than that of the bound": other_name_than_the_bound,
}
"""What mends do, in words. Of several for a loop the first is taken."""
