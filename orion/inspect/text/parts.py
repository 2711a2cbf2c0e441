"""How a loop is run in another order than it is written in, in words: its parts, and why the result stays the same."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from orion.cost.candidate import Strategy
from orion.dataclass import dataclass
from orion.inspect.text.conflicts import sizing_reasons
from orion.inspect.text.words import blocks_in_words, counted, lines_in_words, listed, shown_part, strategy_in_words
from orion.ir.function import written_names
from orion.ir.nodes import Assign, For, If, Stmt, Var, walk
from orion.ir.program import LoopNest, Repeat, RunLoop, Step, blocks_of
from orion.passes.between import SYNTHETIC
from orion.plan.iterations import NAME
from orion.plan.plan import FunctionPlan, LoopPlan, Reordered, ReorderedSingle
from orion.plan.source_plans import formulas

PROOF = (
    "every dependence of the loop as written still goes forwards in this order (proved by isl), "
    "so the result stays the same"
)
ONCE = "run once, on one worker"


@dataclass(frozen=True, slots=True)
class Told:
    """A line about the new order, inside so many serial loops."""

    depth: int
    words: str


def new_order(loop: LoopPlan, plan: FunctionPlan) -> list[Told]:
    """What runs in place of a loop, in turn, and that it may; nothing for one that runs as it is written."""
    if not loop.parts:
        return []
    found = list(_told(loop, plan.program.steps, 0)) if has_list(loop) else [Told(0, _tiles(loop.parts[0]))]
    return [*found, Told(0, PROOF)]


def has_list(loop: LoopPlan) -> bool:
    """Whether more is to be told of the parts of a loop than the tiles of one."""
    return len(loop.parts) > 1 or any(_rounds(part) for part in loop.parts)


def _tiles(part: LoopPlan) -> str:
    shown = shown_part(part)
    inside = "inside a tile they run on one worker"
    if isinstance(part.form, Reordered) and part.form.is_time_tiled:
        inside += ", as they are written; what it touches stays in the cache of that worker from round to round"
    return f"the statements are gone through in tiles of ({', '.join(shown.nest.dims)}); {inside}"


def _told(loop: LoopPlan, steps: Iterable[Step], depth: int) -> Iterator[Told]:
    """The steps of a program that are about the parts of a loop."""
    parts = {part.nest.number: position for position, part in enumerate(loop.parts)}
    for step in steps:
        if isinstance(step, RunLoop) and step.number in parts:
            position = parts[step.number]
            yield Told(depth, f"{position + 1}. {part_in_words(loop.parts[position])}")
            continue
        is_new = isinstance(step, Repeat) and isinstance(step.loop, For) and step.loop.index == SYNTHETIC
        for block in blocks_of(step):
            inside = list(_told(loop, block, depth + is_new))
            if inside and is_new and isinstance(step, Repeat):
                yield Told(depth, f"{_round_in_words(loop, step, depth)}, one after another:")
            yield from inside


def _round_in_words(loop: LoopPlan, repeat: Repeat, depth: int) -> str:
    """What a round of a serial loop of the new order is: "for each t"."""
    numbers = set(_numbers(repeat.steps))
    names = [formulas(part)[depth] for part in loop.parts if part.nest.number in numbers and _rounds(part)]
    names += [name for part in loop.parts if part.nest.number in numbers for name in _same(part, repeat)]
    written = written_names(loop.nest.function)
    told = next((name for name in names if written.issuperset(re.findall(NAME, name))), "")
    return f"for each {told}" if told else "in rounds"


def _numbers(steps: Iterable[Step]) -> Iterator[int]:
    for step in steps:
        if isinstance(step, RunLoop):
            yield step.number
        for block in blocks_of(step):
            yield from _numbers(block)


def _rounds(part: LoopPlan) -> int:
    """How many serial loops of the new order stand around a part that is shared out."""
    return len(formulas(part)) - len(part.nest.dims) if isinstance(part.form, Reordered) else 0


def _same(part: LoopPlan, repeat: Repeat) -> Iterator[str]:
    """The variables of the source that are the variable of a new loop in a part."""
    variable = repeat.space.var if repeat.space else ""
    for statement in part.nest.body:
        for node in walk(statement):
            match node:
                case Assign(target=Var(name), value=Var(value)) if value == variable:
                    yield name


def part_in_words(part: LoopPlan) -> str:
    """One part: its source lines, and how they are run."""
    source = part.nest.function.source
    lines = lines_of(part.nest)
    where = lines_in_words(lines) if lines else "nothing"
    if len(lines) == 1:
        where += f", `{source.line(lines[0]).strip()}`"
    if isinstance(part.form, ReorderedSingle):
        return f"{where}: {ONCE}"
    shown = shown_part(part)
    said = [f"{where}: {part.strategy}: {strategy_in_words(shown)}"]
    blocks, workers = blocks_in_words(shown), counted(part.runs_on, "worker")
    if part.strategy is not Strategy.SERIAL:
        said.append(f"{blocks}, on {workers}" if blocks else f"on {workers}")
    said += [reason.told + reason.help for reason in sizing_reasons(part)]
    return "; ".join(said)


def lines_of(nest: LoopNest) -> tuple[int, ...]:
    """The source lines of the statements that a loop of a new order runs, without those of its own making."""
    found: set[int] = set()
    waiting: list[Stmt] = list(nest.body)
    while waiting:
        statement = waiting.pop()
        if statement.span != nest.span:
            spans = [node.span for node in walk(statement) if node.span.file == nest.span.file]
            found |= {line for span in spans for line in range(span.line, span.end_line + 1)}
        elif isinstance(statement, For):
            waiting += statement.body
        elif isinstance(statement, If):
            waiting += (*statement.body, *statement.orelse)
    return tuple(sorted(found))


def tiles_in_words(loop: LoopPlan) -> str:
    """What the strategy of a loop does, in one sentence, whether it is run as written or not."""
    if not loop.parts or loop.strategy is Strategy.SERIAL:
        return strategy_in_words(loop)
    if not has_list(loop):
        shown = shown_part(loop.parts[0])
        return f"tiles of ({', '.join(shown.nest.dims)}); {strategy_in_words(shown)}"
    shared = [part for part in loop.parts if isinstance(part.form, Reordered)]
    once = len(loop.parts) - len(shared)
    pieces = [f"{counted(len(shared), 'loop')} that {'is' if len(shared) == 1 else 'are'} shared out"]
    if once:
        pieces.append("statements that one worker runs")
    return f"taken apart into {listed(pieces)}"
