"""A program written out as one text again, as if nothing had been taken apart: to compare it with its function."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from orion.ir.nodes import For, If, Stmt, While
from orion.ir.program import SYNTHETIC, Branch, Repeat, RunLoop, Scalars, Step
from orion.ir.spans import without_spans


def text_of(steps: Iterable[Step], loops: Mapping[int, tuple[For, ...]]) -> tuple[Stmt, ...]:
    """The statements that steps run, `loops` being those that planned loops stand for."""
    return tuple(part for step in steps for part in _texts(step, loops))


def _texts(step: Step, loops: Mapping[int, tuple[For, ...]]) -> Iterator[Stmt]:
    match step:
        case Scalars(body):
            yield from body
        case RunLoop(number):
            yield from loops[number]
        case Repeat(loop, inner):
            yield replace(loop, body=text_of(inner, loops))
        case Branch(statement, (then, orelse)):
            yield replace(statement, body=text_of(then, loops), orelse=text_of(orelse, loops))


def bare(body: Iterable[Stmt]) -> tuple[Stmt, ...]:
    """A text without places in the source, and without the loops of one trip around statements that run once."""
    return tuple(part for statement in body for part in _bare(statement))


def _bare(statement: Stmt) -> Iterator[Stmt]:
    match statement:
        case For(_, body, index) if index == SYNTHETIC:
            yield from bare(body)
        case For(_, body) | While(_, body):
            yield without_spans(replace(statement, body=bare(body)))
        case If(_, body, orelse):
            yield without_spans(replace(statement, body=bare(body), orelse=bare(orelse)))
        case _:
            yield without_spans(statement)
