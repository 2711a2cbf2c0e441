"""How many trips the loops of a generated function make at most."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Mapping
from math import inf

Interval = tuple[int | None, int | None]
"""The least and the greatest value, None where it is not known."""

Bracket = tuple[int, int]
"""Both of them, where they are known."""

UNKNOWN: Interval = (None, None)

Linear = dict[str, int]
"""A sum of multiples of names."""


def bracket(value: int) -> Bracket:
    """The powers of two around an integer.

    >>> bracket(5), bracket(8), bracket(0), bracket(-3)
    ((4, 7), (8, 15), (0, 0), (-3, -2))
    """
    if value < 0:
        least, greatest = bracket(-value)
        return -greatest, -least
    return (1 << value.bit_length()) >> 1, (1 << value.bit_length()) - 1


DEPTH = 24
"""How many names, minima and maxima are looked into, one inside the other."""


class Bounds:
    """The loops of a function whose text is `function`; `known` are the least and greatest values of numbers
    by their text: "n", "a.shape[0]"."""

    def __init__(self, function: ast.FunctionDef, known: Mapping[str, Bracket]) -> None:
        self._known = known
        self._bindings: dict[str, list[ast.expr | None]] = defaultdict(list)
        self._found: dict[str, Interval] = {}
        self._texts: dict[str, ast.expr] = {}
        self._lines: dict[str, int] = {}
        for node in ast.walk(function):
            self._note(node)

    def _note(self, node: ast.AST) -> None:
        match node:
            case ast.For(target=ast.Name(id=name), iter=space) | ast.Assign(targets=[ast.Name(id=name)], value=space):
                self._bindings[name].append(space)
                self._lines[name] = space.lineno
            case ast.Name(id=name, ctx=ast.Store()):
                pass
        if isinstance(node, ast.For | ast.Assign | ast.AugAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if isinstance(node, ast.AugAssign) or not isinstance(target, ast.Name):
                    names = (part.id for part in ast.walk(target) if isinstance(part, ast.Name))
                    for name in names:
                        self._bindings[name].append(None)

    # ------------------------------------------------------------ trips

    def step(self, loop: ast.For) -> int:
        """The step of a loop where it is a constant other than 0, else 0."""
        arguments = _range(loop.iter)
        return (constant(arguments[2]) or 0) if arguments else 0

    def fixed_trips(self, loop: ast.For) -> int | None:
        """How many trips a loop makes at most, at any sizes; None where the text does not say it."""
        arguments, step = _range(loop.iter), self.step(loop)
        if arguments is None or step <= 0:
            return None
        start, stop, _ = arguments
        distance = self._most(_difference(self._linear(stop, False), self._linear(start, True)), DEPTH)
        return None if distance is None else max(0, -(-distance // step))

    def _most(self, form: Linear, depth: int) -> int | None:
        """The most that a sum of multiples of names can be, at any sizes. Names stand for what they are assigned, those
        assigned last first: what they have in common then cancels before it is looked into."""
        names = [name for name, factor in form.items() if factor and name]
        left = sorted(names, key=lambda name: (-self._lines.get(name, inf if name in self._texts else 0), name))
        if not left:
            return form.get("", 0)
        meant = [(name, self._meant(name)) for name in left]
        for name, value in meant if depth else ():
            factor = form[name]
            if value is None or abs(factor) > 1:
                continue
            rest = {other: count for other, count in form.items() if other != name}
            parts, is_any = _choices(value, factor > 0)
            found = []
            for part in parts:
                more = self._linear(part, factor < 0)
                found.append(self._most(_difference(rest, {n: -factor * c for n, c in more.items()}), depth - 1))
            known = [one for one in found if one is not None]
            if is_any:
                return min(known, default=None)
            return max(known) if len(known) == len(found) else None
        return None

    def _meant(self, name: str) -> ast.expr | None:
        """What a name is assigned, where that is in one place only and no range; the minimum or maximum that a text
        is."""
        if name in self._texts:
            return self._texts[name]
        values = self._bindings.get(name, [])
        return values[0] if len(values) == 1 and values[0] is not None and _range(values[0]) is None else None

    def _linear(self, node: ast.expr, is_least: bool) -> Linear:
        """An expression as a sum of multiples of names, and of texts of what is none; the number has the name "". Where
        whole multiples of c are taken (`floor_divided(x, c) * c`), the least that it can be is said, or the most."""
        match node:
            case ast.Constant(value=int(value)):
                return {"": value}
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return _difference(self._linear(left, is_least), _times(-1, self._linear(right, is_least)))
            case ast.BinOp(left=left, op=ast.Sub(), right=right):
                return _difference(self._linear(left, is_least), self._linear(right, not is_least))
            case ast.BinOp(
                left=ast.Call(func=ast.Name(id="floor_divided"), args=[part, ast.Constant(value=int(divisor))]),
                op=ast.Mult(),
                right=ast.Constant(value=factor),
            ) if factor == divisor:
                return _difference(self._linear(part, is_least), {"": divisor - 1 if is_least else 0})
            case ast.BinOp(left=ast.Constant(value=int(factor)), op=ast.Mult(), right=part):
                return _times(factor, self._linear(part, is_least == (factor > 0)))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return _times(-1, self._linear(operand, not is_least))
            case ast.Call(func=ast.Name(id="int64"), args=[part]):
                return self._linear(part, is_least)
            case _:
                text = ast.unparse(node)
                if _parts(node, "min") or _parts(node, "max"):
                    self._texts[text] = node
                return {text: 1}

    def trips(self, loop: ast.For) -> int | None:
        """How many trips a loop makes at most, at these sizes."""
        arguments, step = _range(loop.iter), self.step(loop)
        if arguments is None or not step:
            return None
        fixed = self.fixed_trips(loop)
        start, stop = (self.interval(part) for part in arguments[:2])
        (low, high) = (start[0], stop[1]) if step > 0 else (stop[0], start[1])
        if low is None or high is None:
            return fixed
        found = max(0, -(-(high - low) // abs(step)))
        return found if fixed is None else min(found, fixed)

    # ------------------------------------------------------------ values

    def interval(self, node: ast.expr) -> Interval:
        """The least and the greatest value of an integer expression."""
        known = self._known.get(ast.unparse(node))
        if known is not None and not (isinstance(node, ast.Name) and node.id in self._bindings):
            return known
        match node:
            case ast.Constant(value=int(value)):
                return value, value
            case ast.Name(id=name):
                return self._of_name(name)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                low, high = self.interval(operand)
                return None if high is None else -high, None if low is None else -low
            case ast.BinOp(left=left, op=op, right=right):
                return _combined(op, self.interval(left), self.interval(right))
            case ast.Call(func=ast.Name(id="min" | "max" as name), args=parts):
                return _extreme(name, [self.interval(part) for part in parts])
            case ast.Call(func=ast.Name(id="int64"), args=[part]):
                return self.interval(part)
            case _:
                return UNKNOWN

    def _of_name(self, name: str) -> Interval:
        if name not in self._bindings:
            return UNKNOWN
        if name not in self._found:
            self._found[name] = UNKNOWN  # where it depends on itself
            values = [self._of_binding(value) for value in self._bindings[name]]
            self._found[name] = _hull(values)
        return self._found[name]

    def _of_binding(self, value: ast.expr | None) -> Interval:
        if value is None:
            return UNKNOWN
        arguments = _range(value)
        if arguments is None:
            return self.interval(value)
        start, stop = (self.interval(part) for part in arguments[:2])
        step = constant(arguments[2])
        if step is None or step == 0:
            return UNKNOWN
        if step > 0:
            return start[0], None if stop[1] is None else stop[1] - 1
        return None if stop[0] is None else stop[0] + 1, start[1]


def constant(node: ast.expr) -> int | None:
    """The value of an integer constant.

    >>> constant(ast.parse("-8", mode="eval").body)
    -8
    """
    match node:
        case ast.Constant(value=int(value)):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(value))):
            return -value
        case _:
            return None


def _range(space: ast.expr) -> tuple[ast.expr, ast.expr, ast.expr] | None:
    """Start, stop and step of a `range`."""
    match space:
        case ast.Call(func=ast.Name(id="range"), args=[stop]):
            return ast.Constant(0), _as_written(stop), ast.Constant(1)
        case ast.Call(func=ast.Name(id="range"), args=[start, stop]):
            return start, _as_written(stop), ast.Constant(1)
        case ast.Call(func=ast.Name(id="range"), args=[start, stop, step]):
            return start, _as_written(stop), step
        case _:
            return None


def _as_written(stop: ast.expr) -> ast.expr:
    """The stop of a range, without what holds it to a width."""
    match stop:
        case ast.Call(func=ast.Name(id="held_stop"), args=[_, inner, *_]):
            return inner
        case _:
            return stop


def _parts(node: ast.expr, name: str) -> list[ast.expr]:
    """The arguments of a call of `min` or `max`; none where it is anything else."""
    match node:
        case ast.Call(func=ast.Name(id=function), args=parts) if function == name:
            return parts
        case _:
            return []


def _choices(value: ast.expr, grows: bool) -> tuple[list[ast.expr], bool]:
    """What stands for a value of which the most is wanted, or the least where it does not grow: any of them, or all."""
    for name in ("min", "max"):
        parts = _parts(value, name)
        if parts:
            return parts, (name == "min") == grows
    return [value], True


def _difference(first: Linear, second: Linear) -> Linear:
    return {name: first.get(name, 0) - second.get(name, 0) for name in {**first, **second}}


def _times(factor: int, form: Linear) -> Linear:
    return {name: factor * count for name, count in form.items()}


def _combined(op: ast.operator, left: Interval, right: Interval) -> Interval:
    (a, b), (c, d) = left, right
    match op:
        case ast.Add():
            return None if a is None or c is None else a + c, None if b is None or d is None else b + d
        case ast.Sub():
            return None if a is None or d is None else a - d, None if b is None or c is None else b - c
        case ast.Mult() | ast.FloorDiv() if c is not None and c == d and c > 0:
            if isinstance(op, ast.Mult):
                return None if a is None else a * c, None if b is None else b * c
            return None if a is None else a // c, None if b is None else b // c
        case _:
            return UNKNOWN


def _extreme(name: str, parts: list[Interval]) -> Interval:
    lows, highs = [low for low, _ in parts], [high for _, high in parts]
    known_lows, known_highs = [x for x in lows if x is not None], [x for x in highs if x is not None]
    if name == "min":
        low = min(known_lows) if len(known_lows) == len(parts) else None
        return low, min(known_highs, default=None)
    high = max(known_highs) if len(known_highs) == len(parts) else None
    return max(known_lows, default=None), high


def _hull(values: Iterable[Interval]) -> Interval:
    values = list(values)
    lows, highs = [low for low, _ in values], [high for _, high in values]
    low = None if None in lows or not lows else min(x for x in lows if x is not None)
    high = None if None in highs or not highs else max(x for x in highs if x is not None)
    return low, high
