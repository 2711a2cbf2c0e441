"""What pulls of copies by workers of several nodes send, in bytes, at meetings (`orion.runtime.ray.meetings`) or one by
one (`orion.runtime.ray.centre`)."""

from __future__ import annotations

from collections.abc import Sequence

from orion.dataclass import dataclass
from orion.dependence.repeated import counted_dim
from orion.plan.plan import LoopPlan
from orion.runtime.walk import UnpredictableError
from orion.schedule.schedule import Schedule


@dataclass(frozen=True, slots=True)
class AtMeetings:
    """What a round of a loop sends: `bytes` in all, those that the busiest node sends or is sent, and how many messages
    follow each other: one for each of the `meetings`, two for each pull by the home node."""

    bytes: int
    busiest: int
    meetings: int


def pulls_of(plan: LoopPlan, schedule: Schedule) -> list[int]:
    """How often each worker pulls its copies in a round. UnpredictableError where that depends on data."""
    nest = plan.nest
    where = f"how many iterations each worker has of the loop in line {nest.span.line}"
    if nest.elements is not None:
        raise UnpredictableError(f"{where} depends on where the elements of `{nest.elements.array}` are")
    if counted_dim(nest):
        raise UnpredictableError(f"{where} depends on the loops around that over `{nest.dims[counted_dim(nest)]}`")
    every, cuts = nest.replicas[0].policy.sync_every, schedule.bounds[0]
    inner = schedule.tiles // max(1, schedule.grid[0])
    counts = [int(sum(cuts[tile // inner + 1] - cuts[tile // inner] for tile in own)) for own in schedule.order]
    return [-(-count // every) for count in counts]


def at_meetings(
    pulls: Sequence[int], has_tiles: Sequence[bool], place: Sequence[int], copy: int, momentum: int
) -> AtMeetings:
    """What is sent where worker w of node `place[w]` pulls `pulls[w]` times; `copy` are the bytes of the copies of all
    replicas of one worker, and `momentum` those of the outer step.

    >>> at_meetings([3, 3, 2], [True] * 3, [0, 0, 1], 100, 0)
    AtMeetings(bytes=900, busiest=700, meetings=3)
    """
    nodes = range(max(place) + 1)
    met = [max((pulls[w] for w, at in enumerate(place) if at == node), default=0) for node in nodes]
    takes_part = [any(has_tiles[w] for w, at in enumerate(place) if at == node) for node in nodes]
    sent, got, most = [0] * len(nodes), [0] * len(nodes), max(met)
    for node in nodes:
        for meeting in range(1, met[node] + 1):
            size = copy * sum(pulls[w] >= meeting for w, at in enumerate(place) if at == node)
            for other in nodes:
                if other != node and takes_part[other] and met[other] >= meeting - 1:
                    sent[node] += size
                    got[other] += size
    giver = met.index(most)
    for node in nodes:
        if met[node] < most:
            size = copy + momentum + (copy * sum(count > met[0] for count in pulls) if node == 0 else 0)
            sent[giver] += size
            got[node] += size
    return AtMeetings(sum(sent), max(*sent, *got), most)


def one_by_one(pulls: Sequence[int], place: Sequence[int], copy: int, *, in_turn: bool) -> AtMeetings:
    """What is sent where worker w of node `place[w]` pulls `pulls[w]` times and the home node does that for those of
    others: their copies, there and back.

    >>> one_by_one([3, 3, 2, 2], [0, 0, 1, 1], 100, in_turn=False)
    AtMeetings(bytes=800, busiest=400, meetings=4)
    """
    others = [count for count, node in zip(pulls, place, strict=True) if node]
    size = copy * sum(others)
    return AtMeetings(2 * size, size, 2 * (sum(others) if in_turn else max(others, default=0)))
