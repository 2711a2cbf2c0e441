"""Random ordered loop nests, drawn by hypothesis: every form of statement that the analysis tells apart.

Nests are small (at most about 600 iterations, extents 3 to 9), their subscripts stay inside their arrays, integers stay
small and floats finite.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import strategies as st

from tests.oracles.bounded import Bounded, Interval, constant, either, named, plus
from tests.oracles.nest_places import placed
from tests.oracles.nest_rows import row_statement, slice_statement
from tests.oracles.nest_values import DTYPES, FILLS, MODULUS, Axis, Drawn, finished_accesses
from tests.oracles.nests import COUNT_VALUES, ArraySpec, Nest
from tests.oracles.other_names import with_other_names
from tests.oracles.varied import varied

VARIABLES = ("i", "j", "k", "l")
MOST_TRIPS = 600
SIZE_LIMITS = {1: (3, 9), 2: (3, 9), 3: (3, 7), 4: (3, 4)}
"""The sizes n and m by the depth of the nest."""

POOLS = (
    ("a",), ("A",), ("a", "b"), ("A", "a"), ("A", "B"), ("p",), ("a", "p"), ("P", "p"), ("A", "b", "P"), ("T", "A"),
)  # fmt: skip
"""The arrays that a nest writes and reads."""

STATEMENTS = (1, 1, 2, 2, 2, 3, 3, 4)
"""How many statements there are at most, apart from those of bodies that have no other."""

INITIAL = {
    "s": "0.0", "t": "0.5", "u": "0.0", "prod": "1.0", "low": "50.0", "high": "-50.0", "c": "0", "d": "1", "e": "2",
    "q": "-1",
}  # fmt: skip
"""Scalars and their first values: `c`, `d`, `e` and `q` are integers."""

SWEPT_SEED = 2
"""Seed of the nests for which sweeps over arrays are run in tiles however small (`tests.oracles.nest_check`)."""

KINDS = ("any", "places", "names")
PLACED_EVERY, NAMED_EVERY = 8, 6
"""One nest of any kind in so many is of one of the others."""

FLIPPED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}


@dataclass(frozen=True)
class Place:
    """Where a statement stands: in how many loops, whose variables have which values; `budget` is how many iterations a
    loop here may still make. `counters` are variables of loops with data-dependent trips."""

    depth: int
    budget: int
    names: tuple[Bounded, ...] = ()
    counters: tuple[Bounded, ...] = ()
    nested: bool = False

    @property
    def subscripts(self) -> tuple[Bounded, ...]:
        return (*self.counters, *self.names)

    def inside(self, variable: Bounded, trips: int) -> Place:
        return Place(self.depth - 1, self.budget // max(1, trips), (*self.names, variable), self.counters, True)

    def counting(self, variable: Bounded) -> Place:
        return Place(0, self.budget // 3, self.names, (*self.counters, variable), True)

    def shifted(self) -> Place:
        """Where the innermost variable has been made one larger."""
        last = plus(self.names[-1], 1)
        return replace(self, names=(*self.names[:-1], Bounded(self.names[-1].text, last.spans)))

    def after(self, variable: Bounded) -> Place:
        """Behind a loop, whose variable has the value of its last trip."""
        wider = either(variable, plus(variable, 1), variable.text)
        return replace(self, names=(*self.names, wider), depth=0)


@dataclass
class Maker:
    """Draws the statements of one nest."""

    drawn: Drawn
    arrays: tuple[str, ...]
    is_plain: bool
    left: int
    scalars: dict[str, None] = field(default_factory=dict)

    def block(self, place: Place) -> list[str]:
        """The statements of a body, at least one."""
        count = self.drawn.pick(1, 1, 2, 2, 3)
        lines: list[str] = []
        loops = 0
        for number in range(count):
            if number and self.left < 1:
                break
            is_loop = place.depth > 0 and place.budget > 1 and (
                (number == count - 1 and not loops) or self.drawn.chance(4)
            )  # fmt: skip
            loops += is_loop
            lines += self.loop(place) if is_loop else self.statement(place)
            if not self.is_plain and place.names and self.drawn.chance(40):
                lines.append(f"{place.names[-1]} += 1")
                place = place.shifted()
        return lines

    def loop(self, place: Place) -> list[str]:
        lines: list[str] = []
        text, values, trips = self.drawn.loop_range(place.names, place.budget)
        variable = named(VARIABLES[len(place.names)], *values)
        if place.names and self.drawn.chance(15):
            text, values, trips = f"range({self.scalar('e')})", ((0, 2), (0, 2)), 3
            variable = named(variable.text, *values)
            lines.append(f"e = {self.drawn.pick(2, 3, *(f'{v} % 3 + 1' for v in place.names))}")
        inside = place.inside(variable, trips)
        body = self.block(inside)
        if lines and self.drawn.chance(2):
            body.append(self.drawn.pick("e -= 1", "e = 0"))
        if place.nested and not self.is_plain and self.drawn.chance(8):
            body = [f"if {self.condition(inside)}:", f"    {self.drawn.pick('continue', 'break')}", *body]
        if self.drawn.chance(12):
            lines, body = [*lines, f"g{len(place.names)} = 0"], self.growing(inside, body)
        lines += [f"for {variable} in {text}:", *indented(body)]
        if place.nested and "range(3)" in text and self.drawn.chance(3):
            lines += self.assign(place.after(variable))
        return lines

    def rounds(self, place: Place) -> list[str]:
        """A loop around sweeps over whole arrays, as in a time loop over a grid; serial where they use a scalar that is
        taken from round to round."""
        text, values, trips = self.drawn.whole_range(place.budget // 9)
        inside = place.inside(named(VARIABLES[0], *values), trips)
        dims = self.drawn.pick(1, 2)
        body = self.carried(inside) if self.drawn.chance(3) else []
        body += [line for _ in range(self.drawn.pick(2, 2, 1, 3)) for line in self.sweep(inside, dims)]
        return [f"for {inside.names[-1]} in {text}:", *indented(body)]

    def sweep(self, place: Place, dims: int) -> list[str]:
        """Loops over an array that assign to elements the values around them, or to a row at the edge."""
        edge = self.drawn.pick(*(None,) * 8, *range(dims))
        along: list[Bounded] = []
        heads: list[str] = []
        for axis in range(dims):
            if axis == edge:
                along.append(constant(self.drawn.pick(0, 1)))
                continue
            text, values, trips = self.drawn.whole_range(place.budget)
            place = place.inside(named(VARIABLES[len(place.names)], *values), trips)
            along.append(place.names[-1])
            heads.append(f"for {along[-1]} in {text}:")
        found = [line for _ in range(self.drawn.pick(1, 1, 1, 1, 2)) for line in self.stencil(place, along)]
        for head in reversed(heads):
            found = [head, *indented(found)]
        return found

    def stencil(self, place: Place, along: Sequence[Bounded]) -> list[str]:
        """One element from those around it, most often those of another array."""
        arrays = ("a", "b") if len(along) == 1 else ("A", "B")
        own, other = self.drawn.pick(arrays, arrays[::-1])
        target, in_place = self.near(own, along), self.drawn.chance(3)
        reads = [self.near(own if in_place or self.drawn.chance(10) else other, along) for _ in range(2)]
        reads.append(self.drawn.pick(target, reads[0]))
        value = self.drawn.pick(
            f"0.3 * ({reads[0]} + {reads[1]} - {reads[2]})", f"0.5 * {reads[0]} - 0.25 * {reads[1]}",
            f"0.5 * {reads[2]} + {place.names[0]}", f"max({reads[2]}, 0.5 * {reads[1]})",
        )  # fmt: skip
        value += " + 0.25 * u" if "u" in self.scalars and self.drawn.chance(2) else ""
        if self.drawn.chance(12):
            return [f"{self.scalar('t')} = {value}", f"{target} = t"]
        if self.drawn.chance(6):
            return [f"if {self.drawn.affine_condition(place.names)}:", *indented([f"{target} = {value}"])]
        return [f"{target} = {value}"]

    def near(self, array: str, along: Sequence[Bounded]) -> str:
        return self.drawn.note(array, tuple(Axis(plus(v, self.drawn.pick(0, 0, -1, 1)), True) for v in along))

    # ------------------------------------------------------------ statements

    def statement(self, place: Place) -> list[str]:
        self.left -= 1
        plain: tuple[str, ...] = ("assign",) * 4 + ("update",) * 2 + ("accumulate",) * 2
        kinds = (*plain, "private", "private", "reduce", "when", "when", "dot", "integer", "carried", "last")
        kinds = (*kinds, "offset", "swap", "best", "slice", "row")
        if not self.is_plain:
            kinds = (*kinds, "while", "data loop", "when data")
        return FORMS[self.drawn.pick(*kinds)](self, place)

    def assign(self, place: Place) -> list[str]:
        array = self.drawn.pick(*self.arrays)
        return [f"{self.target(array, place)} = {self.value(array, place)}"]

    def update(self, place: Place) -> list[str]:
        """An operator in place."""
        array = self.drawn.pick(*self.arrays)
        target = self.target(array, place)
        if is_integer(array):
            op = self.drawn.pick("+=", "-=", "*=", "//=", "%=", "^=")
            value = {"*=": "-1", "//=": "2", "%=": "11"}.get(op) or self.value(array, place)
            return [f"{target} {op} {value}"]
        op = self.drawn.pick("+=", "-=", "*=", "/=")
        return [f"{target} {op} {'0.5' if op == '*=' else '2.0' if op == '/=' else self.value(array, place)}"]

    def accumulate(self, place: Place) -> list[str]:
        """`C[i] += …` with fewer loop variables in the subscript than there are loops."""
        array = self.drawn.pick(*self.arrays)
        outer = Place(0, 0, place.names[:-1])
        return [f"{self.target(array, outer)} += {self.value(array, place)}"]

    def private(self, place: Place) -> list[str]:
        """A scalar that is written, then read."""
        array = self.drawn.pick(*self.arrays)
        name = "d" if is_integer(array) else "t"
        first = [f"{self.scalar(name)} = {self.value(array, place)}"]
        between = self.assign(place) if self.drawn.chance(3) else []
        use = f"{name} % {MODULUS}" if name == "d" else f"{name} * 0.5"
        return [*first, *between, f"{self.target(array, place)} = {use} + {self.term(array, place)}"]

    def carried(self, place: Place) -> list[str]:
        """A scalar that takes a value to the next iteration."""
        array = self.drawn.pick(*self.arrays)
        if is_integer(array):
            return [
                f"{self.scalar('d')} = (d * 3 + {self.term(array, place)}) % {MODULUS}",
                f"{self.target(array, place)} = d",
            ]
        return [f"{self.scalar('u')} = 0.5 * u + {self.term(array, place)}", f"{self.target(array, place)} = u"]

    def last(self, place: Place) -> list[str]:
        """A scalar whose last value is returned."""
        return [f"{self.scalar('u')} = {self.value('a' if 'a' in self.arrays else 'x', place)}"]

    def best(self, place: Place) -> list[str]:
        """The largest or smallest value so far, and mostly where it is."""
        value = self.value("a" if "a" in self.arrays else "x", place)
        name, op = self.drawn.pick(("high", ">"), ("high", ">="), ("low", "<"), ("low", "<="))
        lines = ["t = " + value] if self.drawn.chance(2) else []
        new = self.scalar("t") if lines else value
        test = self.drawn.pick(f"{new} {op} {self.scalar(name)}", f"{name} {FLIPPED[op]} {new}")
        followers = [f"{self.scalar('q')} = {self.drawn.pick(*place.names[-2:])}"] if place.names else []
        return [*lines, f"if {test}:", *indented([f"{name} = {new}", *followers])]

    def growing(self, place: Place, body: list[str]) -> list[str]:
        """The body with a counter of the trips of its loop, which is used in a subscript."""
        depth = len(place.names) - 1
        spans = tuple((0, high - low + 1) for low, high in place.names[-1].spans)
        counter = Bounded(f"g{depth}", (spans[0], spans[1]))
        array = self.drawn.pick(*self.arrays)
        others = tuple(self.drawn.axis(place.names[-1], place.names) for _ in range(DTYPES[array][1] - 1))
        target = self.drawn.note(array, (*others, Axis(counter, True)))
        use = f"{target} {self.drawn.pick('=', '+=')} {self.value(array, place)}"
        step = f"{counter} += 1"
        return self.drawn.pick([*body, use, step], [use, *body, step], [step, use, *body])

    def reduce(self, place: Place) -> list[str]:
        """One step of a reduction of a scalar."""
        array = self.drawn.pick(*self.arrays)
        term = self.term(array, place)
        if is_integer(array):
            return [self.drawn.pick(f"{self.scalar('c')} += {term} % 7", f"c = c + {term} % 5", f"c -= {term} % 3")]
        forms = {
            "s": (f"s += {term}", f"s = s + {term}", f"s -= {term}", f"s = {term} + s"),
            "prod": (f"prod *= 1.0 + 0.0625 * {term}", f"prod = prod * (0.5 + 0.0625 * {term})"),
            "low": (f"low = min(low, {term})", f"low = min({term}, low)"),
            "high": (f"high = max(high, {term})", f"high = max({term}, high)"),
        }
        return [self.drawn.pick(*forms[self.scalar(self.drawn.pick("s", "s", "prod", "low", "high"))])]

    def integer(self, place: Place) -> list[str]:
        """A counter."""
        return [f"{self.scalar('c')} += {self.drawn.pick(1, 2, *(str(v) for v in place.names[-1:]))}"]

    def when(self, place: Place) -> list[str]:
        names = place.names
        test = self.drawn.affine_condition(names) if names else "n > 3"
        self.drawn.used |= set() if names else {"n"}
        return self.branches(test, place)

    def when_data(self, place: Place) -> list[str]:
        return self.branches(self.condition(place), place)

    def branches(self, test: str, place: Place) -> list[str]:
        alone = Place(0, 0, place.names, place.counters, True)
        has_loop = place.depth > 0 and place.budget > 1 and self.drawn.chance(4)
        body = self.loop(replace(place, nested=True)) if has_loop else self.statement(alone)
        lines = [f"if {test}:", *indented(body)]
        if self.drawn.chance(3):
            lines += ["else:", *indented(self.statement(alone))]
        return lines

    def offset(self, place: Place) -> list[str]:
        """An integer that is used in a subscript."""
        if not place.names:
            return self.assign(place)
        first = self.drawn.axis(place.names[-1], place.subscripts).value
        value, lines = Bounded(self.scalar("e"), first.spans), [f"e = {first}"]
        match self.drawn.pick("plain", "plain", "changed", "either"):
            case "changed":
                lines.append("e += 1")
                value = Bounded("e", plus(first, 1).spans)
            case "either":
                second = plus(place.names[-1], self.drawn.pick(0, 1, -1))
                lines += [f"if {self.drawn.affine_condition(place.names)}:", f"    e = {second}"]
                value = either(first, second, "e")
        array = self.drawn.pick(*self.arrays)
        others = tuple(self.drawn.axis(place.names[-1], place.names) for _ in range(DTYPES[array][1] - 1))
        target = self.drawn.note(array, (*others, Axis(plus(value, self.drawn.pick(0, 1, -1)), True)))
        return [*lines, f"{target} {self.drawn.pick('=', '+=')} {self.value(array, place)}"]

    def swap(self, place: Place) -> list[str]:
        """Two elements, or an element and a scalar, assigned at once."""
        array = self.drawn.pick(*self.arrays)
        left, right = self.target(array, place), self.target(array, place)
        if is_integer(array) or self.drawn.chance(2):
            return [f"{left}, {right} = {right}, {left}"]
        return [f"{self.scalar('t')}, {left} = {right}, 0.5 * t"]

    def dot(self, place: Place) -> list[str]:
        """A sum over an inner loop, in a scalar that each iteration begins anew."""
        if place.depth < 1 or place.budget < 2:
            return self.assign(place)
        array = self.drawn.pick(*self.arrays)
        name, zero = ("c", "0") if is_integer(array) else ("t", "0.0")
        text, values, trips = self.drawn.loop_range(place.names, place.budget)
        variable = named(VARIABLES[len(place.names)], *values)
        inside = place.inside(variable, trips)
        return [
            f"{self.scalar(name)} = {zero}",
            f"for {variable} in {text}:",
            f"    {name} += {self.term(array, inside)}" + (" % 5" if is_integer(array) else ""),
            f"{self.target(array, place)} = {name}",
        ]

    def while_(self, place: Place) -> list[str]:
        """A loop whose trips depend on data."""
        start = self.drawn.count(place.names) if self.drawn.chance(2) else "2"
        inside = place.counting(named("w", (1, COUNT_VALUES), (1, COUNT_VALUES)))
        self.scalars["w"] = None
        return [f"w = {start}", "while w > 0:", *indented([*self.simple(inside), "w -= 1"])]

    def data_loop(self, place: Place) -> list[str]:
        """An inner loop whose bound is read from an array."""
        text = self.drawn.count(place.names)
        span: Interval = (0, COUNT_VALUES - 2)
        inside = place.counting(named("r", span, span))
        return [f"for r in range({text}):", *indented(self.simple(inside))]

    def simple(self, place: Place) -> list[str]:
        return self.drawn.pick(Maker.assign, Maker.update, Maker.accumulate, Maker.reduce)(self, place)  # type: ignore[no-any-return]

    # ------------------------------------------------------------ values

    def scalar(self, name: str) -> str:
        self.scalars[name] = None
        return name

    def target(self, array: str, place: Place) -> str:
        return self.drawn.access(array, place.subscripts)

    def condition(self, place: Place) -> str:
        return self.drawn.condition(place.subscripts, self.arrays, [n for n in self.scalars if n != "w"])

    def term(self, array: str, place: Place) -> str:
        """A single operand of the dtype of an array."""
        if is_integer(array):
            integers = [name for name in (array, *self.arrays) if is_integer(name)]
            return self.drawn.access(self.drawn.pick(*integers), place.subscripts)
        others = [name for name in self.arrays if not is_integer(name)]
        return self.drawn.access(self.drawn.pick(*others, "x") if others else "x", place.subscripts)

    def value(self, array: str, place: Place) -> str:
        """A right-hand side of the dtype of an array; no larger than twice its operands."""
        first = self.term(array, place)
        if is_integer(array):
            second = self.drawn.pick("1", *map(str, place.subscripts[-1:]), "term", "term")
            second = self.term(array, place) if second == "term" else second
            return self.drawn.pick(f"({first} + {second}) % {MODULUS}", f"({first} * 3 - {second}) % {MODULUS}")
        kinds = ("sum", "sum", "one", "scaled", "product", "mixed", "function", "choose", "scalar", "scalar")
        match self.drawn.pick(*kinds):
            case "one":
                return f"{first} {self.drawn.pick('- 1.0', '+ 0.1', '* 0.7')}"
            case "scaled":
                return f"0.3 * ({first} + {self.term(array, place)} - {self.term(array, place)})"
            case "product":
                return f"0.25 * {first} * {self.drawn.access('x', place.subscripts)}"
            case "mixed":
                variables = place.subscripts[-1:]
                return f"0.5 * {first} + {variables[0]}" if variables else f"0.5 * {first}"
            case "function":
                other = self.term(array, place)
                return self.drawn.pick(f"abs({first})", f"min({first}, {other})", f"max({first}, 0.5 * {other})")
            case "choose" if place.subscripts:
                return f"{first} if {self.drawn.affine_condition(place.subscripts)} else {self.term(array, place)}"
            case "scalar" if self.scalars.keys() & {"t", "u", "s"}:
                name = self.drawn.pick(*(name for name in ("t", "u", "s") if name in self.scalars))
                return f"0.5 * {first} + 0.25 * {name}"
            case _:
                return f"{first} {self.drawn.pick('+', '-')} {self.term(array, place)}"


FORMS: dict[str, Callable[[Maker, Place], list[str]]] = {
    "assign": Maker.assign, "update": Maker.update, "accumulate": Maker.accumulate, "private": Maker.private,
    "carried": Maker.carried, "last": Maker.last, "reduce": Maker.reduce, "integer": Maker.integer,
    "when": Maker.when, "when data": Maker.when_data, "dot": Maker.dot, "while": Maker.while_,
    "data loop": Maker.data_loop, "offset": Maker.offset, "swap": Maker.swap,
    "best": Maker.best, "slice": slice_statement, "row": row_statement,
}  # fmt: skip


def is_integer(array: str) -> bool:
    return DTYPES[array][0] == "int64"


def indented(lines: Iterable[str]) -> list[str]:
    return [f"    {line}" for line in lines]


# ---------------------------------------------------------------- whole nests


@st.composite
def nests(draw: st.DrawFn) -> Nest:
    """A function with one to three nests at its top level."""
    return make_nest(lambda options: draw(st.sampled_from(options)))


def random_nest(seed: int, number: int, kind: str = "any") -> Nest:
    """Nest number `number` of a seed, of one of `KINDS`, without hypothesis."""
    return make_nest(random.Random(f"{seed} {number}").choice, kind)


def make_nest(choose: Callable[[Sequence[Any]], Any], kind: str = "any") -> Nest:
    """A nest, by a function that chooses among options: often in one of the guises of `tests.oracles.varied`, and
    sometimes, or always (`kind`), with loops as `tests.oracles.nest_places` has them, or with variables called like
    functions (`tests.oracles.other_names`)."""
    nest = varied(plainly_written(choose), choose)
    if kind == "places" or choose(range(PLACED_EVERY)) == PLACED_EVERY - 1:
        nest = placed(nest, choose)
    return with_other_names(nest, choose) if kind == "names" or not choose(range(NAMED_EVERY)) else nest


def plainly_written(choose: Callable[[Sequence[Any]], Any]) -> Nest:
    """One nest or several one after the other, as users would write them who write as the generator does."""
    depth = choose((1, 1, 1, 2, 2, 2, 2, 2, 2, 3, 3, 4))
    low, high = SIZE_LIMITS[depth]
    n, m = choose(range(low, high + 1)), choose(range(low, high + 1))
    drawn = Drawn(choose, {"n": (n, n + 3), "m": (m, m + 2)})
    maker = Maker(drawn, choose(POOLS), choose((True, True, False)), 1 if depth == 4 else choose(STATEMENTS))
    if depth in (2, 3) and drawn.chance(4):
        return finished(maker, maker.rounds(Place(depth, MOST_TRIPS)), (SWEPT_SEED, SWEPT_SEED, 0, 1))
    body = maker.loop(Place(depth, MOST_TRIPS))
    for _ in range(drawn.pick(0, 0, 0, 0, 0, 0, 1, 1, 2)):
        maker.left = 2
        body += between(maker)
        body += maker.loop(Place(min(depth, 2), MOST_TRIPS // 4))
    return finished(maker, body)


def between(maker: Maker) -> list[str]:
    """What stands between two nests: nothing, a statement about scalars, or one about an array or slices of it."""
    match maker.drawn.pick("nothing", "nothing", "scalar", "array", "slice"):
        case "scalar" if maker.scalars.keys() & {"s", "t", "u"}:
            name = maker.drawn.pick(*(name for name in ("s", "t", "u") if name in maker.scalars))
            return [f"{name} = {maker.drawn.pick('0.25', f'0.5 * {name}')}"]
        case "array":
            return maker.assign(Place(0, 0))
        case "slice":
            return slice_statement(maker, Place(0, 0))
        case _:
            return []


def finished(maker: Maker, body: Sequence[str], seeds: Sequence[int] = range(4)) -> Nest:
    """The function around a body, its arrays large enough for all subscripts, with one of the seeds."""
    drawn = maker.drawn
    texts, shapes = finished_accesses(drawn.accesses, drawn.pick(0, 0, 1), drawn.equal)
    known = [name for name in INITIAL if name in maker.scalars]
    returned = [name for name in known if drawn.pick(True, True, False)]
    lines = [f"{name} = {INITIAL[name]}" for name in known]
    lines += [replaced(line, texts) for line in body]
    if returned:
        lines.append(f"return {', '.join(returned)}")
    arrays: dict[str, ArraySpec] = {}
    for name, (small, large) in sorted(shapes.items()):
        dtype = DTYPES[name][0]
        arrays[name] = ArraySpec(dtype, FILLS.get(name, "whole" if dtype == "int64" else "value"), small, large)
    sizes = drawn.sizes
    if "z" in drawn.used:
        small, large = ((sizes["n"][k], sizes["m"][k]) for k in (0, 1))
        arrays["z"] = ArraySpec("float64", "value", small, large)
    integers = {name: sizes[name] for name in ("n", "m") if name in drawn.used}
    head = f"def nest({', '.join((*arrays, *integers))}):"
    return Nest("\n".join([head, *indented(lines)]) + "\n", arrays, integers, drawn.pick(*seeds))


def replaced(line: str, texts: Sequence[str]) -> str:
    """The line with its marks, and those inside what they stand for, replaced by accesses."""
    while "⟨" in line:
        line = re.sub(r"⟨(\d+)⟩", lambda found: texts[int(found[1])], line)
    return line
