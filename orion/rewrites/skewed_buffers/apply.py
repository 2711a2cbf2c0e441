"""The loops of a box in skewed buffers: smaller boxes of (t, p, s), one after the other, copied in, run and copied out.

Copied in is all that a buffer has room for, as far as it is in the array: elements that the box does not use have no
effect. Copied out are the elements that the box writes, and no others: those may be another worker's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, reduce

from orion.dataclass import dataclass, replace
from orion.dependence.region import Statement
from orion.ir.nodes import (
    Assign,
    Binary,
    Call,
    Choose,
    Compare,
    Const,
    Expr,
    For,
    If,
    Logic,
    Range,
    Stmt,
    Subscript,
    Var,
)  # fmt: skip
from orion.ir.program import Buffer
from orion.ir.rewriting import rewrite
from orion.passes.between import SYNTHETIC
from orion.rewrites.band import Band, Layout, Skew
from orion.rewrites.reorder.expressions import from_isl
from orion.rewrites.reorder.outline import ast_build
from orion.rewrites.reorder.writer import value_at
from orion.rewrites.skewed_buffers.find import MIN_ROUNDS, ROUNDS, VECTOR, unimodular_axes
from orion.rewrites.skewed_buffers.halfspaces import (
    Form,
    InexactError,
    Scanner,
    between,
    combined,
    replaced,
    simplified,
    without,
)
from orion.sets.names import extent_name
from orion.source import Span

ONE: Form = {"": 1}


def buffers_of(band: Band) -> tuple[Buffer, ...]:
    """The buffers that the loops of a band use."""
    if band.skew is None:
        return ()
    layouts, names = band.skew.layouts, index_names(band)
    return tuple(Buffer(x.name, x.array, x.length, names[: len(x.constants)]) for x in layouts)


def index_names(band: Band) -> tuple[str, ...]:
    """The variables of the loops that copy arrays."""
    assert band.skew is not None
    return tuple(f"{band.dims[0]}_at{axis}" for axis in range(max(len(x.constants) for x in band.skew.layouts)))


def in_skewed_buffers(
    band: Band, statement: Statement, names: Mapping[str, Expr], span: Span, otherwise: tuple[Stmt, ...]
) -> tuple[Stmt, ...]:
    """What is run for a box of a band with one statement: `otherwise` where the box has few rounds, or some access
    would be outside of its array. `names` are what the parameters of isl sets stand for."""
    return _Box(band, statement, names, span).statements(otherwise)


@dataclass(frozen=True)
class _Box:
    band: Band
    statement: Statement
    names: Mapping[str, Expr]
    span: Span

    def statements(self, otherwise: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        body = (*self.copies(copy_in=True), *self.compute(), *self.copies(copy_in=False))
        return (If(self.test(), self.tiles(body), otherwise, self.span),)

    # ------------------------------------------------------------ names

    @property
    def skew(self) -> Skew:
        assert self.band.skew is not None
        return self.band.skew

    @property
    def layouts(self) -> tuple[Layout, ...]:
        return self.skew.layouts

    @cached_property
    def dims(self) -> tuple[str, ...]:
        """The coordinates of the band from the outermost loop to the innermost: t, p and q."""
        return tuple(self.band.dims[member] for member in self.band.loop_order)

    @property
    def step(self) -> str:
        """The variable of the loop over s = p + q."""
        return f"{self.dims[-1]}_step"

    @cached_property
    def scanner(self) -> Scanner:
        own = [*self.dims, self.step, *index_names(self.band)]
        own += [f"{dim}_{ending}" for dim in self.dims for ending in ("tile", "size", "stop")]
        limits = [name for pair in self.band.limits for name in pair]
        own += [self.base(layout) for layout in self.layouts]
        return Scanner({**self.names, **{name: self.var(name) for name in (*own, *limits)}}, self.span)

    def var(self, name: str) -> Var:
        return Var(name, self.span)

    def const(self, value: int) -> Const:
        return Const(value, self.span)

    def value(self, *terms: tuple[int, Form]) -> Expr:
        return self.scanner.expression(combined(*terms))

    def limits(self, dim: str) -> tuple[Form, Form]:
        first, end = self.band.limits[self.band.dims.index(dim)]
        return {first: 1}, {end: 1}

    def base(self, layout: Layout) -> str:
        """The variable for where in a buffer something begins."""
        return f"{self.dims[-1]}_{layout.array}_low"

    # ------------------------------------------------------------ the loops over smaller boxes

    def test(self) -> Expr:
        """Whether buffers pay and hold: enough rounds, and every access inside its array."""
        import islpy as isl

        rounds = [self.value((1, end), (-1, first)) for first, end in map(self.limits, self.dims[:-2])]
        product = reduce(lambda left, right: Binary("*", left, right, self.span), rounds)
        parts: list[Expr] = [Compare((">=",), (product, self.const(MIN_ROUNDS)), self.span)]
        for layout in self.layouts:
            inside = isl.Set(layout.inside)
            build = ast_build((), isl.Set("{ : }", inside.get_ctx()))
            test = from_isl(build.expr_from_set(inside), self.scanner.names, self.span)
            parts += [] if isinstance(test, Const) else [test]
        return parts[0] if len(parts) == 1 else Logic("and", tuple(parts), self.span)

    def tiles(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        *outer, p, q = self.dims
        (p_first, p_end), (q_first, q_end) = self.limits(p), self.limits(q)
        start = combined((1, {f"{p}_tile": 1}), (1, q_first))
        stop = combined((1, {f"{p}_stop": 1}), (1, q_end), (-1, ONE))
        body = (self.loop(f"{q}_tile", start, stop, self.const(self.skew.steps), body),)
        body = self.slices(p, p_first, p_end, self.const(self.skew.lanes), body)
        for dim in reversed(outer):
            first, end = self.limits(dim)
            size = Assign(self.var(f"{dim}_size"), self.even(first, end), self.span)
            body = (size, *self.slices(dim, first, end, self.var(f"{dim}_size"), body))
        return body

    def slices(self, dim: str, first: Form, end: Form, size: Expr, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """A loop over slices of a coordinate, from …_tile to before …_stop."""
        beyond = Binary("+", self.var(f"{dim}_tile"), size, self.span)
        stop = Assign(self.var(f"{dim}_stop"), Call("min", (beyond, self.value((1, end))), self.span), self.span)
        return (self.loop(f"{dim}_tile", first, end, size, (stop, *body)),)

    def loop(self, name: str, start: Form, stop: Form, step: Expr, body: tuple[Stmt, ...]) -> For:
        space = Range(name, self.value((1, start)), self.value((1, stop)), step, self.span)
        return For(space, body, SYNTHETIC, self.span)

    def even(self, first: Form, end: Form) -> Expr:
        """The rounds of a smaller box: equal parts of few rounds; of many, as many as there may be."""
        trips = self.value((1, end), (-1, first))
        found: Expr = self.const(ROUNDS)
        for parts in range(4, 0, -1):
            above = self.value((1, end), (-1, first), (parts - 1, ONE))
            part = above if parts == 1 else Binary("//", above, self.const(parts), self.span)
            few = Compare(("<=",), (trips, self.const(parts * ROUNDS)), self.span)
            found = Choose(few, part, found, self.span)
        return found

    # ------------------------------------------------------------ the iterations of one of them

    @cached_property
    def inside(self) -> list[dict[str, int]]:
        """The iterations in a smaller box: inequalities over t, p and s."""
        assert self.band.skew is not None
        *outer, p, q = self.dims
        forms: list[Form] = [dict(form) for form in self.band.skew.domain]
        for dim in (*outer, p):
            forms += between({f"{dim}_tile": 1}, {dim: 1}, {f"{dim}_stop": 1})
        first, end = self.limits(q)
        forms += between(first, {q: 1}, end)
        along = {q: {self.step: 1, p: -1}}
        found = [replaced(form, along) for form in forms]
        return simplified(found + between({f"{q}_tile": 1}, {self.step: 1}, {f"{q}_tile": 1, "": self.skew.steps}))

    def compute(self) -> tuple[Stmt, ...]:
        """The iterations in the order (t, s, p). The loop over p is made of loops with a fixed number of trips, which
        makes better code, and of one for the rest."""
        assert self.band.skew is not None
        *outer, p, q = self.dims
        body: list[Stmt] = []
        for loop, form in zip(self.statement.loops, self.band.skew.variables, strict=True):
            assert isinstance(loop.space, Range)
            value = self.value((1, replaced(dict(form), {q: {self.step: 1, p: -1}})))
            body.append(Assign(self.var(loop.space.var), value_at(loop.space, value), self.span))
        body += [rewrite(part, self.in_buffer) for part in self.statement.body]
        (lanes,) = self.scanner.loops([p], [form for form in self.inside if form.get(p)], tuple(body))
        assert isinstance(lanes, For)
        assert isinstance(lanes.space, Range)
        rest = [form for form in self.inside if not form.get(p)]
        return self.scanner.loops([*outer, self.step], rest, self.vectors(lanes, lanes.space))

    def vectors(self, lanes: For, space: Range) -> tuple[Stmt, ...]:
        low, high, part = (self.var(f"{space.var}_{ending}") for ending in ("low", "high", "strip"))
        whole = Binary("+", part, self.const(VECTOR), self.span)
        parts = Binary("//", Binary("-", high, low, self.span), self.const(VECTOR), self.span)
        rest = Binary("+", low, Binary("*", parts, self.const(VECTOR), self.span), self.span)
        begin = [Assign(self.var(self.base(x)), self.value((1, self.line(x))), self.span) for x in self.layouts]
        strips = Range(part.name, low, rest, self.const(VECTOR), self.span)
        return (
            *begin,
            Assign(low, space.start, self.span),
            Assign(high, Call("max", (space.stop, low), self.span), self.span),
            For(strips, (self.lanes(lanes, part, whole),), SYNTHETIC, self.span),
            self.lanes(lanes, rest, high),
        )

    def lanes(self, loop: For, start: Expr, stop: Expr) -> For:
        assert isinstance(loop.space, Range)
        space = Range(loop.space.var, start, stop, self.const(1), self.span)
        return For(space, loop.body, SYNTHETIC, self.span)

    def in_buffer(self, expr: Expr) -> Expr:
        """An element of an array as the one of its buffer."""
        found = [x for x in self.layouts if isinstance(expr, Subscript) and x.array == expr.base.name]
        if not found or not isinstance(expr, Subscript):
            return expr
        layout = found[0]
        across, along = dict(layout.offsets)[expr.span]
        constant = self.const((along - layout.first[1]) * layout.stride + across - layout.first[0])
        begin = Binary("+", self.var(self.dims[-2]), self.var(self.base(layout)), self.span)
        return Subscript(Var(layout.name, expr.base.span), (Binary("+", begin, constant, self.span),), expr.span)

    def line(self, layout: Layout) -> Form:
        """Where in a buffer the line of this t and s begins, less p."""
        *outer, p, q = self.dims
        terms: list[tuple[int, Form]] = [(layout.stride, {self.step: 1, f"{q}_tile": -1}), (-1, {f"{p}_tile": 1})]
        for dim, (across, along) in zip(outer, layout.slopes, strict=True):
            terms.append((along * layout.stride + across, {dim: 1, f"{dim}_tile": -1}))
        return combined(*terms)

    # ------------------------------------------------------------ copies

    def copies(self, copy_in: bool) -> Iterable[Stmt]:
        for layout in self.layouts:
            targets = [None] if copy_in else list(layout.writes)
            if targets:
                yield Assign(self.var(self.base(layout)), self.value((1, self.corner(layout))), self.span)
            for write in targets:
                yield from self.copy(layout, write)

    def copy(self, layout: Layout, write: tuple[int, int] | None) -> tuple[Stmt, ...]:
        """The loops that copy an array to its buffer, or back what an access to it writes."""
        indices = index_names(self.band)[: len(layout.constants)]
        place, equations = self.places(layout, indices)
        forms: list[Form] = [*equations, *(combined((-1, equation)) for equation in equations)]
        at = combined((layout.stride, place["#d"]), (1, place["#e"]), (-1, {self.base(layout): 1}))
        here = Subscript(self.var(layout.name), (self.value((1, at)),), self.span)
        there = Subscript(self.var(layout.array), tuple(map(self.var, indices)), self.span)
        if write is None:
            forms += [replaced(form, place) for form in self.room(layout)]
            for axis, index in enumerate(indices):
                forms += between({}, {index: 1}, {extent_name(layout.array, axis): 1})
            return self.scanner.loops(indices, simplified(forms), (Assign(here, there, self.span),))
        forms += [replaced(form, place) for form in self.written(layout, write)]
        back = Assign(there, here, self.span)
        try:
            once: Sequence[Form] = forms
            for dim in self.dims[:-2]:
                once = without(dim, once)
            return self.scanner.loops(indices, simplified(once), (back,))
        except InexactError:
            return self.by_rounds(indices, forms, back)

    def by_rounds(self, indices: tuple[str, ...], forms: Sequence[Form], back: Stmt) -> tuple[Stmt, ...]:
        """The loops that copy back what a smaller box writes, where the rounds write sets that have no simple union.

        Each round writes an interval of a row, which lies further down in later rounds. From the last round to the
        first those parts of the intervals are copied that lie above all intervals before.
        """
        (dim,), (*rows, last) = self.dims[:-2], indices
        if any(form.get(last, 0) and form.get(dim, 0) * form[last] < 0 for form in forms):
            raise InexactError
        shadow = [form for form in without(dim, forms, exact=False) if not form.get(last)]
        backwards = {dim: combined((1, {f"{dim}_tile": 1}), (1, {f"{dim}_stop": 1}), (-1, ONE), (-1, {dim: 1}))}
        (cells,) = self.scanner.loops([last], [replaced(form, backwards) for form in forms if form.get(last)], (back,))
        assert isinstance(cells, For)
        assert isinstance(cells.space, Range)
        done, low, high = self.var(f"{last}_low"), self.var(f"{last}_start"), self.var(f"{last}_high")
        inner = (
            Assign(low, Call("max", (cells.space.start, done), self.span), self.span),
            Assign(high, cells.space.stop, self.span),
            replace(cells, space=replace(cells.space, start=low, stop=high)),
            Assign(done, Call("max", (done, high), self.span), self.span),
        )
        some = [replaced(form, backwards) for form in forms if not form.get(last)]
        rounds = self.scanner.loops([dim], [form for form in some if form.get(dim)], inner)
        rest = [form for form in forms if not form.get(last) and not form.get(dim)]
        return self.scanner.loops(rows, simplified((*shadow, *rest)), (Assign(done, self.const(0), self.span), *rounds))

    def places(self, layout: Layout, indices: tuple[str, ...]) -> tuple[dict[str, Form], list[Form]]:
        """(e, d) of the element at some indices, and what is zero of indices that have one."""
        import numpy as np

        steps = np.array(layout.steps, np.int64)
        axes = unimodular_axes(steps.T)
        assert axes is not None
        u, v = axes
        constants = [dict(form) for form in layout.constants]
        moved = [combined((1, {index: 1}), (-1, form)) for index, form in zip(indices, constants, strict=True)]
        (pu, pv), (qu, qv) = ((int(row[u]), int(row[v])) for row in steps)
        det = pu * qv - qu * pv
        e = combined((det * qv, moved[u]), (-det * qu, moved[v]))
        beta = combined((-det * pv, moved[u]), (det * pu, moved[v]))
        rest: list[Form] = [
            combined((1, moved[w]), (-int(steps[0, w]), e), (-int(steps[1, w]), beta))
            for w in range(len(indices))
            if w not in axes
        ]
        return {"#e": e, "#d": combined((1, e), (1, beta))}, rest

    def corner_of(self, layout: Layout) -> tuple[Form, Form]:
        """The least (e, d) that a buffer has room for."""
        *outer, p, q = self.dims
        found = []
        for axis, tile in enumerate((f"{p}_tile", f"{q}_tile")):
            tilts = [(slope[axis], {f"{dim}_tile": 1}) for dim, slope in zip(outer, layout.slopes, strict=True)]
            found.append(combined((1, {tile: 1}), (layout.first[axis], ONE), *tilts))
        return found[0], found[1]

    def corner(self, layout: Layout) -> Form:
        """Where that would be in a buffer that began at (0, 0)."""
        e, d = self.corner_of(layout)
        return combined((1, e), (layout.stride, d))

    def room(self, layout: Layout) -> list[Form]:
        """The (e, d) that a buffer has room for."""
        found: list[Form] = []
        for name, corner, extent in zip(("#e", "#d"), self.corner_of(layout), layout.extents, strict=True):
            found += between(corner, {name: 1}, combined((1, corner), (extent, ONE)))
        return found

    def written(self, layout: Layout, write: tuple[int, int]) -> list[Form]:
        """The t and (e, d) of the elements that a smaller box writes by one access."""
        *outer, p, _ = self.dims
        back = []
        for axis, name in enumerate(("#e", "#d")):
            tilts = [(-slope[axis], {dim: 1}) for dim, slope in zip(outer, layout.slopes, strict=True)]
            back.append(combined((1, {name: 1}), (-write[axis], ONE), *tilts))
        return [replaced(form, {p: back[0], self.step: back[1]}) for form in self.inside]
