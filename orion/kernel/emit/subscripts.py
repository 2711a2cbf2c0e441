"""Elements and parts of arrays: which subscripts are known to be inside, and how the others are checked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from orion.ir.nodes import Expr, Slice, Subscript, Var
from orion.kernel.emit.code import Code, call
from orion.kernel.emit.expressions import NARROW_BITS, Expressions
from orion.kernel.emit.ranged import Key, subscript_key
from orion.source import Span


class Subscripts(Expressions):
    """Adds elements to expressions. `certain` are subscripts that a test around the code has shown to be inside."""

    certain: frozenset[Key] = frozenset()

    def element(self, subscript: Subscript) -> str:
        """`base[…]`, an element or a part, with every subscript that is not proved to be inside checked."""
        name = subscript.base.name
        base = self.names.user(name)
        rank = self.facts.typing.name(name).rank
        parts = [self.index_part(subscript, axis, part, base) for axis, part in enumerate(subscript.index)]
        if self.facts.is_padded(name):
            parts += [":"] * (rank - 1 - len(parts))
            columns = self.facts.shapes[name][-1]
            if len(parts) < rank:
                parts.append(f":{columns}")
            elif isinstance(subscript.index[-1], Slice):
                rows = ", ".join(parts[:-1])
                return f"{base}[{rows}, :{columns}][{', '.join([':'] * self.type_of(subscript).rank)[:-1]}{parts[-1]}]"
        return f"{base}[{', '.join(parts)}]"

    def index_part(self, subscript: Subscript, axis: int, part: Expr, base: str) -> str:
        if isinstance(part, Slice):
            return self.slice_text(part)
        kind = self.type_of(part)
        if kind.rank > 0:
            hint = "write a loop over the subscripts"
            raise self.refuse(part, "an array of subscripts is not supported", hint=hint)
        return self.index(subscript, axis, part, base)

    def slice_text(self, part: Slice) -> str:
        lower, upper = ("" if bound is None else self.bound(bound).text for bound in (part.lower, part.upper))
        return f"{lower}:{upper}" + ("" if part.step is None else f":{self.bound(part.step).text}")

    def index(self, subscript: Subscript, axis: int, part: Expr, base: str) -> str:
        """One scalar subscript as an unsigned integer: without the code that wraps negative ones around."""
        code = self.expression(part)
        if self.is_proved(subscript, axis):
            return code.text if code.text.isdigit() else f"uint64({code.text})"
        return self.checked_index(subscript, axis, code)

    def is_proved(self, subscript: Subscript, axis: int | None = None) -> bool:
        """Whether a subscript is known to be inside its array; without an axis, all of an element's or a row's."""
        axes = range(len(subscript.index)) if axis is None else (axis,)
        if self.certain and all(subscript_key(subscript, one) in self.certain for one in axes):
            return True
        in_row = any(isinstance(part, Var) and part.name in self.row_variables for part in subscript.index)
        return in_row or self.facts.is_proved(subscript, axis) or self.intervals.is_inside(subscript, axis)

    @contextmanager
    def certainly(self, keys: frozenset[Key]) -> Iterator[None]:
        """What is emitted where some subscripts are known to be inside of their arrays. What else is looked at there
        may not be looked at elsewhere."""
        inside, certain = dict(self.inside), self.certain
        self.certain = certain | keys
        yield
        self.inside, self.certain = inside, certain

    def checked_index(self, subscript: Subscript, axis: int, code: Code) -> str:
        if np.dtype(code.dtype).kind not in "iu":
            raise self.refuse(subscript, f"a subscript is a {code.dtype}", hint="make it an integer with `int(…)`")
        part = subscript.index[axis] if axis < len(subscript.index) else None  # of `CHECKED` only the one is given
        array = subscript.base.name
        if not isinstance(part, Var) or part.name in self.facts.nest.dims or self.facts.array(array) is None:
            return self.check(subscript, axis, code)
        key = part.name, array, axis
        if key not in self.inside:
            if self.writer.in_place:
                return self.check(subscript, axis, code)
            self.inside[key] = self.names.fresh(f"{part.name}_of_{array}")
            self.writer.add(f"{self.inside[key]} = int64({self.check(subscript, axis, code)})")
        return f"uint64({self.inside[key]})"

    def check(self, subscript: Subscript, axis: int, code: Code) -> str:
        """The code of a subscript counted from the start of its axis, checked there."""
        array = subscript.base.name
        code = call("signed", code, dtype="int64") if code.dtype == "uint64" else code
        place = f"{self.extent(array, axis).text}, {axis}, {self.site(array, subscript.span)}, control"
        limits, part = np.iinfo(code.dtype), subscript.index[axis] if axis < len(subscript.index) else None
        if limits.bits <= NARROW_BITS and isinstance(part, Subscript):  # an element, which has that many bits for sure
            return f"checked_narrow({code.text}, {limits.max + 1}, {place})"
        return f"checked({code.text}, {place})"

    def check_before(self, subscript: Subscript, axis: int, name: str, condition: str) -> None:
        """Check a subscript that is a name before a loop in which it is used, if the loop has any trip."""
        key = name, subscript.base.name, axis
        kind = self.facts.typing.name(name)
        is_integer = not kind.rank and np.dtype(kind.dtype).kind in "iu"
        if key in self.inside or not is_integer or self.facts.array(key[1]) is None or self.is_proved(subscript, axis):
            return
        code = self.expression(subscript.index[axis])
        self.inside[key] = self.names.fresh(f"{name}_of_{key[1]}")
        self.writer.add(f"{self.inside[key]} = int64(0)")
        with self.writer.block(f"if {condition}:"):
            self.writer.add(f"{self.inside[key]} = int64({self.check(subscript, axis, code)})")

    def is_checked(self, span: Span) -> bool:
        """Whether a subscript at that place is checked when the loop runs."""
        return any(site.span == span for site in self.sites)
