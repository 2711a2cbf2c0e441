"""Assignments of scalars, of elements, and of rows that are held in registers."""

from __future__ import annotations

from orion.dependence.access import Reduction
from orion.ir.assigned import assigned_places
from orion.ir.nodes import (
    Assign,
    Binary,
    Bind,
    Call,
    Const,
    Evaluate,
    Expr,
    Logic,
    Node,
    Stmt,
    Subscript,
    Tuple,
    Update,
    Var,
    every,
    walk,
)  # fmt: skip
from orion.kernel.emit.code import NOT, SIGN, Code, call
from orion.kernel.rows.folds import Folds
from orion.kernel.rows.linear import render
from orion.kernel.rows.terms import NotInRegistersError
from orion.passes.kernel_limits import hidden_write, written_arguments
from orion.passes.writes import viewed_names
from orion.typing.value_type import ValueType


class Assignments(Folds):
    """Emits simple statements that need no rows in memory, and keeps account of which rows in registers are still
    valid."""

    # ------------------------------------------------------------ what a statement changes

    def forget_written(self, statement: Stmt) -> None:
        """Drop the rows in registers that the statement may change: of arrays it writes, or at indices it assigns."""
        if id(statement) not in self.written:
            arrays = set().union(*(self.written_by(node) for node in walk(statement)))
            self.written[id(statement)] = statement, arrays, assigned_places([statement])
        _, arrays, names = self.written[id(statement)]
        self.forget_arrays(arrays)
        for name in names:
            self.forget_indexed_by(name)

    def forget_arrays(self, names: set[str]) -> None:
        """Drop the rows of arrays that were written; a write through a name that is no argument may be to any."""
        to_any = any(self.may_be_view(name) for name in names)
        for place in [place for place in self.loaded if to_any or place.array in names]:
            del self.loaded[place]

    def may_be_view(self, name: str) -> bool:
        """Whether a name that is no argument may stand for a part of one."""
        is_kept = name in self.registers or name in self.buffers or self.facts.array(name) is not None
        return not is_kept and self.facts.typing.name(name).rank > 0

    def written_by(self, node: Node) -> set[str]:
        match node:
            case Assign(Subscript(base)) | Update(Subscript(base)) | Update(Var() as base):
                return {base.name}
            case Assign(Tuple(items)):
                return {item.base.name for item in items if isinstance(item, Subscript)}
            case Call():
                written = [node.arguments[position] for position in self.written_arguments(node)]
                return {name for argument in written for name in viewed_names(argument)}
            case _:
                return set()

    def written_arguments(self, call: Call) -> tuple[int, ...]:
        """The positions of the arguments that a call may write in place."""
        return written_arguments(call, self.facts.nest.function, self.type_of)

    def check_calls(self, *parts: Node) -> None:
        """Refuse a call that writes arrays inside an expression: what is read before and after it there could be the
        same rows in registers."""
        for made in every(Call, *parts):
            if self.written_arguments(made):
                raise self.refuse(made, *hidden_write(made))

    def check_order(self, statement: Assign | Update | Bind | Evaluate) -> None:
        """Refuse calls that write arrays except where the call is all that a statement computes."""
        match statement:
            case Assign(target, Call(_, arguments)) | Update(Var() as target, _, Call(_, arguments)):
                self.check_calls(target, *arguments)
            case Evaluate(Call(_, arguments)):
                self.check_calls(*arguments)
            case _:
                self.check_calls(statement)

    def forget_called(self, statement: Stmt) -> None:
        """Drop the rows in registers that calls in the statement may change."""
        arrays = set().union(*(self.written_by(node) for node in every(Call, statement)))
        self.forget_arrays(arrays)

    def in_registers(self, statement: Assign | Update | Bind | Evaluate) -> bool:
        """Emit a statement about rows in registers, or one about scalars; raises NotInRegistersError for others."""
        match statement:
            case Assign(Var(name), value) if name in self.registers:
                self.assign_private(name, value)
            case Update(Var(name) as target, op, value) if name in self.registers:
                self.writer.add(f"{self.names.user(name)} = {self.updated(target, op, value, self.leaf(target))}")
            case Assign(Subscript() as target, value) if self.type_of(target).rank == 1:
                self.assign_row(target, value)
            case Update(Subscript() as target, op, value) if self.type_of(target).rank == 1:
                row = self.leaf(target)
                self.store(target, self.updated(target, op, value, row))
            case Assign(Var(name), value) if self.type_of(value).rank == 0:
                self.assign_scalar(name, value)
            case Update(Var(name) as target, op, value) if self.type_of(target).rank == 0:
                self.update_scalar(name, op, value, statement)
            case Assign(Subscript() as target, value) if self.type_of(target).rank == 0:
                self.assign_element(target, value)
            case Update(Subscript() as target, op, value) if self.type_of(target).rank == 0:
                self.update_element(target, op, value)
            case _:
                raise NotInRegistersError
        return True

    # ------------------------------------------------------------ rows in registers

    def assign_private(self, name: str, value: Expr) -> None:
        kind = self.facts.typing.name(name)
        self.writer.add(f"{self.names.user(name)} = {self.row_of(value, kind.dtype, self.length_of(kind))}")

    def length_of(self, kind: ValueType) -> int:
        length = self.facts.register_row(kind)
        if length is None:
            raise NotInRegistersError
        return length

    def row_of(self, value: Expr, dtype: str, length: int) -> str:
        """The code of a row, or of a scalar repeated, as a row of that dtype and length."""
        kind = self.type_of(value)
        if kind.rank == 0:
            return f"spread({self.operand(value, dtype).text}, {length})"
        if self.facts.register_row(kind) != length:
            raise NotInRegistersError
        code = self.row(value)
        return code.text if kind.dtype == dtype else call(f"row_as_{dtype}", code, dtype=dtype).text

    def updated(self, target: Var | Subscript, op: str, value: Expr, row: str) -> str:
        """The code of `row op value`, as a row of the target's dtype; a sum need not be rounded as written."""
        target_kind = self.type_of(target)
        length = self.length_of(target_kind)
        whole = Binary(op, target, value, target.span)
        kind = self.type_of(whole)
        if op not in ("+", "-", "*", "/"):
            raise NotInRegistersError
        is_sum = self.facts.fastmath and op in ("+", "-")
        code = render(self.term(whole, length, kind.dtype), kind.dtype, is_sum).code
        return code.text if kind.dtype == target_kind.dtype else f"row_as_{target_kind.dtype}({code.text})"

    def assign_row(self, target: Subscript, value: Expr) -> None:
        place = self.place(target)
        self.store(target, self.row_of(value, place.dtype, place.length))

    def store(self, target: Subscript, value: str) -> None:
        """Write a row to its array; it stays in registers under its name, other rows of the array are forgotten."""
        place = self.place(target)
        known = self.loaded.get(place)
        start = known.start if known is not None else self.start(target)
        for other in [other for other in self.loaded if other.array == place.array and other != place]:
            del self.loaded[other]
        row = self.keep(place, start, value)
        self.writer.add(f"store_row({self.names.user(place.array)}, {row.start}, {row.name})")

    # ------------------------------------------------------------ scalars and elements

    def assign_scalar(self, name: str, value: Expr) -> None:
        reduction = self.facts.reduction(name)
        if reduction is not None and not reduction.op.startswith("helper:"):
            self.combine(reduction, self.other_operand(name, value), value)
            return
        code = self.operand(value, self.facts.declared(name))
        self.writer.add(f"{self.names.user(name)} = {code.text}")
        self.forget_indexed_by(name)

    def forget_indexed_by(self, name: str) -> None:
        for place in [place for place in self.loaded if name in place.names]:
            del self.loaded[place]
        for key in [key for key in self.inside if key[0] == name]:
            del self.inside[key]

    def update_scalar(self, name: str, op: str, value: Expr, statement: Stmt) -> None:
        reduction = self.facts.reduction(name)
        target = self.names.user(name)
        dtype = self.facts.declared(name)
        if reduction is not None:
            self.add_or_multiply(target, op, self.operand(value, dtype))
            return
        whole = Binary(op, Var(name, statement.span), value, statement.span)
        kind = self.type_of(whole)
        if self.facts.fastmath and op in "+-" and kind.dtype == dtype and dtype.startswith("float"):
            self.add_or_multiply(target, op, self.operand(value, dtype))
        else:
            code = self.converted(self.arithmetic(op, Var(name, statement.span), value, kind), dtype)
            self.writer.add(f"{target} = {code.text}")
        self.forget_indexed_by(name)

    def add_or_multiply(self, target: str, op: str, term: Code) -> None:
        """`target op= term` for + - or *, computed in the dtype of both. Sums of floats may be reassociated, so that a
        loop over the terms can be vectorized."""
        if self.facts.fastmath and op in "+-" and term.dtype.startswith("float"):
            term = term if op == "+" else Code(f"-{term.at(SIGN)}", term.dtype, SIGN)
            self.writer.add(f"{target} = add_to_sum({target}, {term.text})")
        else:
            self.writer.add(f"{target} {op}= {term.text}")

    def other_operand(self, name: str, value: Expr) -> Expr:
        """What a reduction written as an assignment combines its scalar with."""
        operands: tuple[Expr, ...]
        match value:
            case Binary(_, left, right):
                operands = (left, right)
            case Call(_, arguments):
                operands = arguments
            case Logic(_, arguments):
                operands = arguments
            case _:
                raise AssertionError(value)
        return next(part for part in operands if not (isinstance(part, Var) and part.name == name))

    def combine(self, reduction: Reduction, operand: Expr, value: Expr) -> None:
        """One step of a reduction that is written as an assignment."""
        target, dtype = self.names.user(reduction.name), self.facts.declared(reduction.name)
        if reduction.op in ("and", "or"):
            self.writer.add(f"{target} = {target} {reduction.op} {self.test(operand).at(NOT)}")
            return
        term = self.operand(operand, dtype)
        match value:
            case Binary(op):
                self.add_or_multiply(target, op, term)
            case Call(function) if function.startswith("np."):
                self.writer.add(f"{target} = {function}({target}, {term.text})")
            case _:  # Python's min and max keep the first value where the two do not compare
                new = self.names.fresh("candidate")
                self.writer.add(f"{new} = {term.text}")
                sign = "<" if reduction.op == "min" else ">"
                first, second = (new, target) if self.is_last(operand, value) else (target, new)
                self.writer.add(f"{target} = {second} if {second} {sign} {first} else {first}")

    def is_last(self, operand: Expr, value: Expr) -> bool:
        """Whether the name of a reduction is the second argument of the call, after `operand`."""
        return isinstance(value, Call) and value.arguments[0] is operand

    def assign_element(self, target: Subscript, value: Expr) -> None:
        dtype = self.type_of(target).dtype
        code = self.operand(value, dtype) if self.type_of(value).weak else self.expression(value)
        self.writer.add(f"{self.element(target)} = {code.text}")
        self.forget_arrays({target.base.name})

    def update_element(self, target: Subscript, op: str, value: Expr) -> None:
        """`target op= value`, computed in NumPy's dtype of the operation, each subscript evaluated once."""
        kind = self.type_of(Binary(op, target, value, target.span))
        is_power = op == "**" and kind.dtype.startswith("float") and not isinstance(value, Const)
        is_own = is_power or (op in ("/", "**") and kind.is_complex)
        code = self.operand(value, kind.dtype) if self.type_of(value).weak else self.expression(value)
        code = self.fitting(value, code, target, kind)
        if op == "**" and isinstance(value, Const):
            code = self.expression(value)
        dtypes = self.type_of(target).dtype, code.dtype
        # NumPy computes with signed and unsigned integers as floats
        mixed = not kind.is_integer and op != "/" and all(dtype.startswith(("int", "uint")) for dtype in dtypes)
        if self.is_guarded(op, value, kind) or is_own or mixed:
            code = self.arithmetic(op, target, value, kind)
            self.writer.add(f"{self.element(target)} = {code.text}")
        else:
            self.writer.add(f"{self.element(target)} {op}= {code.text}")
        self.forget_arrays({target.base.name})
