"""What is told of arrays with buffers: what may be late, by how much, and what would keep the loop serial else."""

from __future__ import annotations

from orion.ir.nodes import Subscript, Update, every
from orion.plan.plan import LoopPlan
from orion.plan.relaxed import How, RelaxedArray


def relaxed_in_words(loop: LoopPlan) -> list[str]:
    """A sentence for each array with a buffer, and one on how its updates are applied."""
    relaxed = loop.relaxed
    found = [_array(loop, one) for one in relaxed.arrays]
    if relaxed.has_delays:
        often = f"after {'every iteration' if relaxed.every == 1 else f'{relaxed.every:,} iterations of its own'}"
        who = "all workers apply their updates, one after the other," if relaxed.deterministic else (
            "a worker applies its updates"
        )  # fmt: skip
        end = "at the end of the loop" if relaxed.deterministic else "at the end of each tile"
        found.append(f"{who} {often} and {end}; who would be further ahead of another waits for it")
    return found


def _array(loop: LoopPlan, one: RelaxedArray) -> str:
    buffered = one.buffered
    late = f"{loop.relaxed.max_delay:,} iteration{'s' * (loop.relaxed.max_delay != 1)}"
    told = f"`{buffered.array}`: updates by `{buffered.source}` are at most {late} late"
    reads = [access for access in loop.analysis.accesses if access.array == buffered.array and not access.is_write]
    updates = [node for node in every(Update, *loop.nest.body) if _is_of(node, buffered.name)]
    if reads and updates:
        read, update = reads[0], updates[0]
        told += f", so that `{buffered.array}` in line {read.span.line} need not wait for line {update.span.line}"
    if one.how is How.AT_ONCE:
        return f"`{buffered.array}`: updates by `{buffered.source}` are added at once, in any order"
    how = "looked for among all elements" if one.how is How.DENSE else "kept in a list"
    applied = "" if buffered.apply is None else f", applied by `{buffered.apply}`"
    return f"{told}; a worker's own are {how}{applied}"


def _is_of(node: Update, name: str) -> bool:
    return isinstance(node.target, Subscript) and node.target.base.name == name
