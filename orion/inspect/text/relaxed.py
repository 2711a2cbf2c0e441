"""What is told of arrays with buffers: what may be late, by how much, and what would keep the loop serial else; and of
replicas: when and how they are pulled together."""

from __future__ import annotations

from orion.arrays.policies import LocalSgd
from orion.inspect.text.words import bytes_in_words
from orion.ir.function import written_names
from orion.ir.nodes import Subscript, Update, every
from orion.ir.replicas import Replica
from orion.plan.plan import LoopPlan
from orion.plan.relaxed import How, RelaxedArray, why_apart


def relaxed_in_words(loop: LoopPlan) -> list[str]:
    """A sentence for each array with a buffer, and one on how its updates are applied; for each replica, and one on
    when pulls are."""
    relaxed = loop.relaxed
    found = [_array(loop, one) for one in relaxed.arrays]
    if relaxed.has_delays:
        often = f"after {'every iteration' if relaxed.every == 1 else f'{relaxed.every:,} iterations of its own'}"
        who = "all workers apply their updates, one after the other," if relaxed.deterministic else (
            "a worker applies its updates"
        )  # fmt: skip
        end = "at the end of the loop" if relaxed.deterministic else "at the end of each tile"
        found.append(f"{who} {often} and {end}; who would be further ahead of another waits for it")
    if relaxed and loop.runs_on > 1:
        found.append(_between_nodes(loop))
    found += [_replica(loop, one) for one in loop.nest.replicas]
    if loop.nest.replicas:
        policy = loop.nest.replicas[0].policy
        often = f"after {'every iteration' if policy.sync_every == 1 else f'{policy.sync_every:,} iterations of each'}"
        pulls = OVERLAPPED if policy.overlaps else PULLS[policy.name]
        found.append(f"{pulls.format(often)} and at the end of the loop; {_where(loop)}")
    return found


FIRST = {
    "magnitude": "those whose updates change their values most first",
    "round_robin": "one row after the other",
    "random": "in any order",
    "fifo": "those that have waited longest first",
}


def _between_nodes(loop: LoopPlan) -> str:
    """How updates go from node to node, or why not."""
    relaxed = loop.relaxed
    why = why_apart(relaxed, loop.takes_tiles)
    if why:
        return f"on several nodes those of one run the loop: updates {why}"
    often = relaxed.max_delay // (4 if loop.counts_on else 2)
    end = "at the end of each tile" if loop.counts_on else "at the end"
    told = f"on several nodes updates go to the others after {often:,} iterations of a worker, and {end}"
    if often < 2:
        told = "on several nodes updates go to the others after each iteration of a worker"
    if loop.served:
        arrays = " and ".join(f"`{one.array}`" for one in loop.served)
        told += f"; of {arrays} a node has the rows that its tiles touch, and tells others of those that they touch too"
    for one in relaxed.arrays:
        send = one.buffered.sending
        if send.order and one.how is not How.READ:
            most = f", at most {8e-6 * send.bandwidth:,g} Mbit/s" if send.bandwidth else ""
            rows = f"rows of `{one.buffered.array}` in messages of {bytes_in_words(send.batch)}, {FIRST[send.order]}"
            told += f"; before that, as the link has time{most}: {rows}"
    return told


def _where(loop: LoopPlan) -> str:
    """Where of several nodes copies are pulled together."""
    if loop.nest.replicas[0].policy.pulls_at_home:
        told = "on several nodes the home node pulls for the workers of others, which send it their copies"
        return told if loop.nest.replicas[0].policy.overlaps else f"{told}, and wait"
    return "on several nodes each then sends the others the copies of its workers, in one message to each"


OVERLAPPED = "all workers post their copies, and are pulled by what all have posted before, {}"
PULLS = {
    "sync": "all workers meet, and pull {}",
    "async": "each worker pulls, under locks, {}",
    "hogwild": "each worker pulls, without locks, {}",
    "round_robin": "one worker after the other pulls {}",
    "local_sgd": "all workers meet, and average {}",
}


def _replica(loop: LoopPlan, one: Replica) -> str:
    is_given = one.array not in [part.name for part in loop.nest.function.buffer_parts]
    array = f"`{one.array}`" if is_given else "its array"
    told = (
        f"`{one.name}` is a copy of {array} for each worker, so that no iteration waits for what others do with theirs"
    )
    policy, workers = one.policy, loop.runs_on
    if isinstance(policy, LocalSgd):
        outer = f"by a step of {policy.step:g} with momentum {policy.momentum:g} towards" if policy.step else "to"
        return f"{told}; the array goes {outer} the average of the copies, which become what it is"
    alpha = f"alpha {policy.alpha_of(workers):.3g}, stable up to {policy.bound(workers):.3g}"
    momentum = f"; after each iteration a copy goes on with momentum {policy.momentum:g}" if policy.momentum else ""
    return f"{told}; a copy and the array are pulled together by part of their difference: {alpha}{momentum}"


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
    applied = "" if buffered.apply is None else f", applied by `{_written(buffered.apply, loop)}`"
    return f"{told}; a worker's own are {how}{applied}"


def _written(helper: str, loop: LoopPlan) -> str:
    """The name that a function of updates has where it is written: of several with one name, others have a number."""
    definition = next(one for one in loop.nest.function.helpers if one.name == helper)
    return helper if helper in written_names(definition) else "apply"


def _is_of(node: Update, name: str) -> bool:
    return isinstance(node.target, Subscript) and node.target.base.name == name
