"""Statements as Numba source: rows in registers where that can be done, plain Python of Numba's everywhere else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

from orion.ir.assigned import assigned_places
from orion.ir.nodes import (
    STORE,
    Assign,
    Binary,
    Bind,
    Break,
    Call,
    Choose,
    Const,
    Continue,
    Evaluate,
    Expr,
    For,
    If,
    Logic,
    Node,
    Pass,
    Range,
    Stmt,
    Subscript,
    Tuple,
    Unary,
    Update,
    Var,
    While,
    children,
    every,
    names_in,
    walk,
)  # fmt: skip
from orion.kernel.emit.choosing import choice_of_values
from orion.kernel.emit.code import Code, call, infix, infix_compare
from orion.kernel.emit.expressions import EACH
from orion.kernel.emit.flush import Flushes
from orion.kernel.emit.invariant import invariant_subscripts
from orion.kernel.emit.private import RowsSpilledError
from orion.kernel.emit.pulls import Pulls
from orion.kernel.emit.running import is_taken
from orion.kernel.emit.scalarize import NotElementwiseError, Scalarizer
from orion.kernel.emit.versions import Versions
from orion.kernel.rows.linear import render
from orion.kernel.rows.sums import ElementTerms
from orion.kernel.rows.terms import NotInRegistersError
from orion.passes.extremes import running
from orion.passes.writes import viewed_names
from orion.source import Span
from orion.typing.functions import Cost, cost_of


def buffers_in(statement: Stmt, *, is_before: bool) -> Iterator[Subscript]:
    """The subscripts in a statement that may be of buffers: of what it updates or, `is_before`, those that are sure to
    be evaluated."""
    if not is_before:
        if isinstance(statement, Update) and isinstance(statement.target, Subscript):
            yield statement.target
        return
    waiting: list[Node] = [statement]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Subscript):
            yield node
        match node:
            case Choose(test):
                waiting.append(test)
            case Logic(_, operands):
                waiting.append(operands[0])
            case _:
                waiting += children(node)


def _calls_slow(body: tuple[Stmt, ...]) -> bool:
    """Whether some statements call a function that the machine has no instruction for."""
    return any(cost_of(call.function) is Cost.SLOW for call in every(Call, *body))


class Statements(Versions):
    """Emits the body of one iteration. `marks` are statements to be run after those that assign a name, `ended` is
    that before a `break` which ends the loop, `values` those of the element of the iteration in their array, with
    their dtypes, by number."""

    commented: Span | None = None
    marks: Mapping[str, str] = {}
    ended: str = ""
    values: Mapping[int, tuple[str, str]] = {}
    flushes: Flushes | None = None
    pulls: Pulls | None = None

    def begin_iteration(self) -> None:
        """Emit what comes before the body."""
        for one in (self.flushes, self.pulls):
            if one:
                one.step(self.writer)

    def block(self, body: Iterable[Stmt]) -> None:
        for statement in body:
            self.writer.span = statement.span
            self.statement(statement)

    def statement(self, statement: Stmt) -> None:
        match statement:
            case If(test, body, orelse):
                self.conditional(test, body, orelse)
            case While(test, body):
                self.check_calls(test)
                self.forget_written(statement)
                with self.in_place():
                    head = f"while {self.test(test).text}:"
                self.inner_block(head, body, statement)
            case For(Range() as space, body):
                self.inner_range(space, body, statement)
            case For():
                hint = "make it a loop of its own"
                raise self.refuse_statement(statement, "a loop over a sparse array inside another loop", hint)
            case Break(is_first=is_first):
                if is_first and self.ended:
                    self.writer.add(self.ended)
                self.writer.add("break")
            case Continue():
                self.writer.add("continue")
            case Pass():
                pass
            case Evaluate(Call(function, (Const(int(number)), value))) if function == STORE:
                place, dtype = self.values[number]
                self.writer.add(f"{place} = {self.operand(value, dtype).text}")
            case Assign() | Update() | Bind() | Evaluate():
                self.comment(statement)
                self.check_order(statement)
                self.note_uses(statement, is_before=True)
                if self.running_extreme(statement) or self.added_at_once(statement):
                    return
                if not self.chosen_at_once(statement):
                    self.simple(statement)
                self.forget_called(statement)
                self.note_uses(statement, is_before=False)
                for name in assigned_places((statement,)):
                    if name in self.marks:
                        self.writer.add(self.marks[name])
            case _:
                hint = "keep the value in a variable and return it after the loop"
                raise self.refuse_statement(statement, "`return` inside a loop is not supported", hint)

    def note_uses(self, statement: Stmt, *, is_before: bool) -> None:
        """Note which parts of arrays with buffers a statement updates, after it; and before it those with snapshots
        that it uses, where it is sure to."""
        for subscript in () if self.flushes is None else buffers_in(statement, is_before=is_before):
            assert self.flushes is not None
            base = self.names.user(subscript.base.name) if self.names.knows(subscript.base.name) else ""
            for one in self.flushes.noted(subscript.base.name):
                if is_before == bool(one.buffered.snapshots):
                    parts = [self.index(subscript, axis, subscript.index[axis], base) for axis in range(one.leading)]
                    self.flushes.note(self.writer, one, parts)

    def added_at_once(self, statement: Stmt) -> bool:
        """Emit an update of a buffer that is applied at once; whether it is one."""
        match statement:
            case Update(Subscript(base) as target, op, value) if self.flushes and self.flushes.is_at_once(base.name):
                dtype, array = self.type_of(target).dtype, self.names.user(base.name)
                update = self.operand(Unary("-", value, value.span) if op == "-" else value, dtype)
                parts = [self.index(target, axis, part, array) for axis, part in enumerate(target.index)]
                self.flushes.add_at_once(self.writer, base.name, ", ".join(parts), update.text)
                return True
            case _:
                return False

    def refuse_statement(self, statement: Stmt, what: str, hint: str) -> Exception:
        return self.refuse(Const(None, statement.span), what, hint=hint)

    def comment(self, statement: Stmt) -> None:
        """The user's line, above what is made from it."""
        if statement.span == self.commented:
            return
        self.commented = statement.span
        text = self.facts.nest.function.source.line(statement.span.line).strip()
        if text:
            self.writer.add(f"# {text}")

    # ------------------------------------------------------------ blocks

    def conditional(self, test: Expr, body: tuple[Stmt, ...], orelse: tuple[Stmt, ...]) -> None:
        self.check_calls(test)
        if self.choose_value(test, body, orelse):
            return
        condition = self.test(test).text
        before = self.known()
        for head, part in ((f"if {condition}:", body), ("else:", orelse)):
            if part:
                self.go_back_to(before)
                with self.writer.block(head):
                    if _calls_slow(part):
                        self.writer.add("branch()")
                    self.block(part)
        self.go_back_to(before)
        for statement in (*body, *orelse):
            self.forget_written(statement)

    def choose_value(self, test: Expr, body: tuple[Stmt, ...], orelse: tuple[Stmt, ...]) -> bool:
        """Emit an `if` that chooses between two values for one element without a branch; whether it is one."""
        found = choice_of_values(test, body, orelse)
        if found is None:
            return False
        values = [assignment.value for assignment in found]
        kinds, target = [self.type_of(value) for value in values], found[0].target
        reads = list(every(Subscript, *(*values, target)))
        if kinds[0] != kinds[1] or kinds[0].rank or kinds[0].weak or not all(map(self.is_proved, reads)):
            return False
        assert isinstance(target, Subscript)
        codes = [self.expression(value) for value in values]
        names = [self.declare(name, kinds[0]) for name in ("chosen", "other")]
        for assignment, name, code in zip(found, names, codes, strict=True):
            self.comment(assignment)
            self.writer.add(f"{name} = {code.text}")
        self.writer.add(f"{self.element(target)} = {names[0]} if {self.test(test).text} else {names[1]}")
        self.forget_arrays({target.base.name})
        return True

    def chosen_at_once(self, statement: Stmt) -> bool:
        """Emit `target = a if test else b` in the same way; whether it is such a statement."""
        match statement:
            case Assign(Subscript() as target, Choose(test, first, second), span):
                return self.choose_value(test, (Assign(target, first, span),), (Assign(target, second, span),))
            case _:
                return False

    def running_extreme(self, statement: Stmt) -> bool:
        """Emit `best = max(best, value)` where `best` is taken from one of the iterations; whether it is that."""
        kept = running(statement)
        if kept is None or not self.facts.is_chosen(kept.name):
            return False
        dtype, target = self.facts.declared(kept.name), self.names.user(kept.name)
        for value in kept.offered:
            new = self.names.fresh("candidate")
            self.writer.add(f"{new} = {self.operand(value, dtype).text}")
            with self.writer.block(f"if {is_taken(kept.op, new, target)}:"):
                if not self.stores:  # beside stores to arrays the branch costs more than it saves
                    self.writer.add("seldom()")
                self.writer.add(f"{target} = {new}")
                if kept.name in self.marks:
                    self.writer.add(self.marks[kept.name])
        return True

    @cached_property
    def stores(self) -> bool:
        """Whether the loop writes elements of arrays."""
        nodes = (node for statement in self.facts.nest.body for node in walk(statement))
        return any(isinstance(node, Assign | Update) and isinstance(node.target, Subscript) for node in nodes)

    def inner_range(self, space: Range, body: tuple[Stmt, ...], loop: Stmt) -> None:
        head = self.range_head(space)
        self.forget_written(loop)
        before = dict(self.inside)
        self.check_invariant(space, body)
        start, stop, _ = self.range_bounds(space, is_held=False)
        for keys, ends in self.versions(space, body, start.text, stop.text):
            with self.certainly(keys):
                own = self.head_between(space, *ends) if ends else head
                self.inner_block(own, body, loop, self.marks.get(space.var))
        self.inside = {key: name for key, name in self.inside.items() if key in before}  # others may not be checked

    def check_invariant(self, space: Range, body: tuple[Stmt, ...]) -> None:
        """Check the subscripts of a loop that are the same in all trips, if there is any."""
        if self.writer.in_place:
            return
        for subscript, axis, part in invariant_subscripts(body, space.var):
            if self.type_of(subscript).rank == 0:
                self.check_before(subscript, axis, part.name, self.has_trips(space))

    def has_trips(self, space: Range) -> str:
        """A test for whether a loop has any trips."""
        start, stop, step = self.range_bounds(space)
        if step.text == "1":
            return infix_compare("<", start, stop).text
        return f"trip_count({start.text}, {stop.text}, {step.text}) > 0"

    def range_head(self, space: Range) -> str:
        self.check_calls(space)
        bounds = [bound.text for bound in self.range_bounds(space)]
        if bounds[2] == "1":
            bounds = bounds[1:2] if bounds[0] == "0" else bounds[:2]
        return f"for {self.names.user(space.var)} in range({', '.join(bounds)}):"

    def inner_block(self, head: str, body: tuple[Stmt, ...], loop: Stmt, mark: str | None = None) -> None:
        before = self.known()
        with self.writer.block(head):
            if mark is not None:
                self.writer.add(mark)
            self.block(body)
        self.go_back_to(before)
        self.forget_written(loop)

    # ------------------------------------------------------------ simple statements

    def simple(self, statement: Assign | Update | Bind | Evaluate) -> None:
        """A statement without blocks: by rows in registers, by a loop over elements, or by NumPy's operations."""
        self.only_registers = True
        done = self.attempt(lambda: self.in_registers(statement))
        self.only_registers = False
        if done:
            return
        spilled = self.registers & names_in(statement)
        if spilled:
            raise RowsSpilledError(spilled)
        if self.in_loops(statement) or self.attempt(lambda: self.in_registers(statement)):
            return
        rebound = self.buffers & set(assigned_places([statement])) if isinstance(statement, Assign) else frozenset()
        if rebound:
            raise RowsSpilledError(rebound)
        self.in_memory(statement)
        self.forget_written(statement)

    def in_loops(self, statement: Assign | Update | Bind | Evaluate) -> bool:
        """Emit a statement about rows as a loop over their elements; whether it can be written so."""
        if self.attempt(lambda: self.row_sum(statement)):
            return True
        try:
            statements = Scalarizer(self, self.buffers).statement(statement)
        except NotElementwiseError:
            return False
        for part in statements:
            if isinstance(part, For) and isinstance(part.space, Range):
                self.inner_range(part.space, part.body, part)
            elif isinstance(part, Assign | Update):
                self.simple(part)
        return True

    def row_sum(self, statement: Assign | Update | Bind | Evaluate) -> bool:
        """Emit `row += …` or `row -= …` of floats as registers would compute it; NotInRegistersError for others."""
        match statement:
            case Update(Var() | Subscript() as target, "+" | "-" as op, value) if self.facts.fastmath:
                whole = Binary(op, target, value, target.span)
            case _:
                raise NotInRegistersError
        scalarizer = Scalarizer(self, self.buffers)
        terms, dtypes = ElementTerms(self, scalarizer), (self.type_of(whole).dtype, self.type_of(target).dtype)
        length = terms.row_length(self.type_of(target))
        if length is None or scalarizer.overlaps(target, value):
            raise NotInRegistersError
        scalarizer.row_variable = self.declare_row_variable()
        code = render(terms.term(whole, length, dtypes[0]), dtypes[0], True).code
        code = code if dtypes[0] == dtypes[1] else call(f"row_as_{dtypes[1]}", code, dtype=dtypes[1])
        for part in scalarizer.before:
            self.statement(part)
        loop = scalarizer.loop(statement, target)
        assert isinstance(loop.space, Range)
        with self.writer.block(self.range_head(loop.space)):
            self.writer.add(f"{self.element(terms.element(target))} = {code.text}")
        self.forget_written(statement)
        return True

    # ------------------------------------------------------------ rows in memory

    def in_memory(self, statement: Assign | Update | Bind | Evaluate) -> None:
        """A statement by NumPy's own operations, as Numba compiles them."""
        match statement:
            case Bind(name, row):
                self.writer.add(f"{self.names.user(name)} = {self.element(row)}")
            case Evaluate(value):
                self.writer.add(self.expression(value).text)
            case Assign(Tuple(items), value):
                self.unpack(items, value)
            case Assign(Var(name), value):
                self.writer.add(f"{self.names.user(name)} = {self.expression(value).text}")
            case Assign(Subscript() as target, value) if self.may_be_in(value, target.base.name):
                self.writer.add(f"assign_part({self.element(target)}, {self.expression(value).text})")
            case Assign(Subscript() as target, value):
                self.writer.add(f"{self.element(target)} = {self.expression(value).text}")
            case Update(target, op, value):
                self.update_array(target, op, value)

    def may_be_in(self, value: Expr, name: str) -> bool:
        """Whether a value may be a part of the array of that name, or of one that the name is a view of."""
        if self.type_of(value).rank == 0:
            return False
        return any(name == other or self.may_be_view(name) or self.may_be_view(other) for other in viewed_names(value))

    def update_array(self, target: Var | Subscript, op: str, value: Expr) -> None:
        """`target op= value` of a row or matrix in memory, computed as a whole before it is written.

        Numba's operators in place would write while they read, and check no lengths.
        """
        dtype = self.type_of(target).dtype
        weak = self.type_of(value).weak
        code = self.operand(value, dtype) if weak else self.apart(self.expression(value), value)
        code = self.fitting(value, code, target, self.type_of(target))
        place = self.element(target) if isinstance(target, Subscript) else self.variable(target.name).text
        written = place if isinstance(target, Subscript) else f"{place}[...]"
        whole, found = infix(op, Code(place, dtype), code, dtype), self.type_of(Binary(op, target, value, target.span))
        if op in EACH and found.dtype.startswith("float"):
            old = self.converted(Code(place, dtype), found.dtype, found.rank)
            whole = call(EACH[op], old, self.operand(value, found.dtype), dtype=found.dtype)
        self.writer.add(f"{written} = {whole.text}")

    def unpack(self, items: tuple[Expr, ...], value: Expr) -> None:
        """`a, b = value`; the values are all computed before the first is assigned."""
        targets = [
            self.element(item) if isinstance(item, Subscript) else self.names.user(item.name)
            for item in items
            if isinstance(item, Var | Subscript)
        ]
        if not isinstance(value, Tuple):
            self.unpack_result(targets, value)
            return
        codes = [
            self.operand(part, self.facts.declared(item.name)) if isinstance(item, Var) else self.expression(part)
            for item, part in zip(items, value.items, strict=True)
        ]
        if not any(isinstance(item, Subscript) and self.type_of(item).rank for item in items):
            self.writer.add(f"{', '.join(targets)} = {', '.join(code.text for code in codes)}")
            return
        parts = [self.names.fresh("part") for _ in codes]
        self.writer.add(f"{', '.join(parts)} = {', '.join(code.text for code in codes)}")
        for item, target, part, whole in zip(items, targets, parts, value.items, strict=True):
            overlaps = isinstance(item, Subscript) and self.may_be_in(whole, item.base.name)
            self.writer.add(f"assign_part({target}, {part})" if overlaps else f"{target} = {part}")

    def unpack_result(self, targets: list[str], value: Expr) -> None:
        """`a, b = f(…)`, each value as the dtype that NumPy gives it."""
        kinds = self.type_of(value).items
        if not kinds:
            self.writer.add(f"{', '.join(targets)} = {self.expression(value).text}")
            return
        result = self.names.fresh("result")
        self.writer.add(f"{result} = {self.expression(value).text}")
        for position, (target, kind) in enumerate(zip(targets, kinds, strict=True)):
            part = self.sure(Code(f"{result}[{position}]", kind.dtype), kind)
            self.writer.add(f"{target} = {part.text}")
