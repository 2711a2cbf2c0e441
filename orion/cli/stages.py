"""`orion stages FILE[:FUNCTION]`: what the compiler makes of a function, after every pass, and what is run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from orion.analysis.one_loop import is_single
from orion.cost.candidate import Strategy
from orion.ir.function import Function
from orion.ir.printer import print_expr, print_function, print_stmt
from orion.ir.program import Branch, Repeat, RunLoop, Scalars, Step
from orion.ir.types import Types
from orion.passes.options import Words
from orion.pipeline import REWRITES, after_each
from orion.plan.conditions import conditions_in_words
from orion.plan.plan import FunctionPlan, LoopPlan
from orion.plan.variants import Variant
from orion.planned import Plan

INDENT = "    "


def stages_text(source: Function, types: Types, variants: Iterable[Variant], plan: Plan) -> str:
    """The stages of a function: its text after each pass that changes it, its variants in the order in which they are
    tried, the rewrites of the one that is taken, and the program that this one is."""
    words = dict(plan.function.program.function.words)
    parts = [*_passes(source, types, words), *_variants(variants, types), *_chosen(plan)]
    return "\n\n".join(f"{title}\n{body}" if body else title for title, body in parts)


def _passes(source: Function, types: Types, words: Words) -> Iterator[tuple[str, str]]:
    yield "source", _indented(print_function(source))
    last = print_function(source)
    for one, function in after_each(source, types, words):
        text = print_function(function)
        changed = text != last
        yield f"pass {one.name}: {one.does}{'' if changed else ' (nothing to do)'}", _indented(text) if changed else ""
        last = text


def _variants(variants: Iterable[Variant], types: Types) -> Iterator[tuple[str, str]]:
    yield (
        "variants, in the order in which they are tried",
        "\n".join(f"{INDENT}{number}. {_in_short(variant, types)}" for number, variant in enumerate(variants, 1)),
    )


def _in_short(variant: Variant, types: Types) -> str:
    """The loops of a variant, with what is legal for each of them."""
    conditions = conditions_in_words(variant.program.function, types)
    loops = [loop for loop in variant.loops if not is_single(loop.nest)]
    words = [
        f"({', '.join(loop.nest.dims)}) in line {loop.nest.span.line} "
        f"{loop.candidates[0].strategy if loop.candidates else Strategy.SERIAL}"
        f"{''.join(f', {name}' for name in loop.rewrites)}"
        for loop in loops
    ]
    return "; ".join((*(f"if {condition}" for condition in conditions), *words)) or "nothing to plan"


def _chosen(plan: Plan) -> Iterator[tuple[str, str]]:
    made = plan.with_bodies()
    told = {one.name: one.does for one in REWRITES}
    fired = [f"{INDENT}{name}, line {line}: {told[name]}" for name, line in rewrites_fired(made)]
    yield "rewrites that made the variant that is taken", "\n".join(fired) or f"{INDENT}none"
    yield "the program that is run", "\n".join(_steps(made.program.steps, made, INDENT))


def rewrites_fired(plan: FunctionPlan) -> tuple[tuple[str, int], ...]:
    """The rewrites that made a plan, with the lines of their loops, in the order of the table. It has its bodies."""
    found = {*plan.rewrites, *((name, loop.nest.span.line) for loop in plan.loops for name in loop.rewrites)}
    order = [one.name for one in REWRITES]
    return tuple(sorted(found, key=lambda one: (order.index(one[0]), one[1])))


def _steps(steps: Iterable[Step], plan: FunctionPlan, indent: str) -> Iterator[str]:
    for step in steps:
        match step:
            case Scalars(body):
                yield from (print_stmt(statement, indent) for statement in body)
            case Repeat(loop, inner):
                yield print_stmt(loop, indent).partition("\n")[0]
                yield from _steps(inner, plan, indent + INDENT)
            case Branch(statement, (then, other)):
                yield f"{indent}if {print_expr(statement.test)}:"
                yield from _steps(then, plan, indent + INDENT)
                if other:
                    yield f"{indent}else:"
                    yield from _steps(other, plan, indent + INDENT)
            case RunLoop(number):
                yield from _planned(plan.loops[number], indent)


def _planned(loop: LoopPlan, indent: str) -> Iterator[str]:
    """A planned loop: how it is cut, and what a tile runs."""
    nest = loop.nest
    if is_single(nest):
        yield f"{indent}# once, on one worker"
        yield from (print_stmt(statement, indent) for statement in nest.body)
        return
    cuts = " × ".join(map(str, loop.cuts))
    workers = f"{loop.runs_on} worker{'s' * (loop.runs_on != 1)}"
    yield f"{indent}# {loop.strategy} over ({', '.join(nest.dims)}): {cuts} tiles, {workers}"
    if nest.limits:
        limits = ", ".join(f"{low} <= {dim} < {high}" for dim, (low, high) in zip(nest.dims, nest.limits, strict=True))
        yield f"{indent}# a tile: {limits}"
        yield from (print_stmt(statement, indent) for statement in nest.body)
    else:
        yield print_stmt(nest.loops[0], indent)


def _indented(text: str) -> str:
    return "\n".join(INDENT + line for line in text.splitlines())
