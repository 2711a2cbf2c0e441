"""Every kind of loop, and every loop of the examples, on threads and on Ray clusters of one, two and three nodes on
this machine: the same bits, the nodes that are used, the bytes that the plan predicts and those that were sent.

    python tests/cluster.py               # all cases; `make cluster` does the same
    python tests/cluster.py --only sweep --nodes 2

Exits with 1 where a result differs from that of threads with as many workers, where a loop uses one node and its plan
does not say why, or where a prediction is not what was sent.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import orion
from orion.arrays.dense import DenseArray
from tests import test_inspected_loops as inspected
from tests import test_promise as promise
from tests.example_calls import example_calls
from tests.ray_nodes import cluster_of
from tests.runtime_programs import cases, integers, sparse_integers
from tests.test_runtime_exchange import MORE

CLUSTERS = {1: (4,), 2: (2, 2), 3: (2, 1, 1)}
"""The CPUs of the nodes of each cluster; the first is the driver's."""

WORKERS = (1, 2, 4)

ARGUMENTS = tuple(name.strip() for name in inspected.SIGNATURE.split(","))


@dataclass(frozen=True)
class Case:
    """`fresh()` gives new arguments, the same each time."""

    name: str
    function: Any
    fresh: Callable[[], dict[str, Any]]

    def run(self) -> tuple[Any, dict[str, bytes]]:
        """What it returns, and the bytes of the dense arrays afterwards."""
        arguments = self.fresh()
        result = self.function(**arguments)
        dense = {k: v for k, v in arguments.items() if isinstance(v, np.ndarray | DenseArray)}
        returned = result.tobytes() if isinstance(result, np.ndarray) else result
        return returned, {name: np.asarray(array).tobytes() for name, array in dense.items()}


def all_cases() -> tuple[Case, ...]:
    """Loops of every strategy, and those of the examples, of which short runs are made for their arguments."""
    return (*loop_cases(), *(Case(call.name, call.function, call.fresh) for call in example_calls()))


def loop_cases() -> tuple[Case, ...]:
    """Loops of every strategy, with integers and with floats."""
    runtime = [Case(name, cases()[name][0], lambda name=name: cases()[name][1]) for name in cases()]
    more = [Case(name, function, fresh) for name, (function, fresh) in MORE.items()]
    return (*runtime, *more, *floats(), *lists_of_iterations())


def floats() -> Iterator[Case]:
    """Those of the promise, whose sums would show another order."""
    generator = np.random.default_rng(8)
    W, H, T = generator.random((60, 8)), generator.random((40, 8)), generator.random((20, 4))

    def factors() -> dict[str, Any]:
        return {"ratings": sparse_integers((60, 40), 3000), "W": W.copy(), "H": H.copy(), "step": 1e-3}

    yield Case("sgd epochs", promise.epochs, lambda: {**factors(), "reg": 0.1, "count": 3})
    yield Case("ordered sgd", promise.ordered_sgd, factors)
    yield Case("rmse", promise.rmse, lambda: {k: v for k, v in factors().items() if k != "step"})
    tensor = sparse_integers((20, 16, 12), 2000)
    yield Case(
        "tensor of floats",
        promise.tensor,
        lambda: {"x": tensor, "A": T.copy(), "B": T[:16].copy(), "C": T[:12].copy(), "step": 1e-3},
    )
    yield Case("sweeps of floats", promise.sweep, lambda: {"A": integers(60, 70) / 7, "sweeps": 4})
    yield Case("other blocks in each round", promise.shifting, lambda: {"a": np.arange(2050.0), "rounds": 5})


def lists_of_iterations() -> Iterator[Case]:
    """Inspected loops, and one whose workers take tiles of each other on one node."""
    for name in ("repeated places", "rows as a whole", "two loops", "rounds of one statement"):
        function = orion.parallel_for(inspected.written(inspected.TEXTS[name]))
        yield Case(f"inspected: {name}", function, lambda: dict(zip(ARGUMENTS, inspected.given(), strict=True)))
    dynamic = orion.parallel_for(schedule="dynamic")(promise.sweep.serial)
    yield Case("dynamic sweeps", dynamic, lambda: {"A": integers(60, 70) / 7, "sweeps": 4})


@contextmanager
def cluster(nodes: int) -> Iterator[str]:
    """The address of a cluster on this machine."""
    with cluster_of(CLUSTERS[nodes]) as address:
        yield address


@dataclass(frozen=True)
class Row:
    """What one run was like: the nodes of the run and those that some loop uses, bytes predicted (None: it depends on
    data) and sent; `why` says which loops use one node, and `wrong` what is wrong with it."""

    case: str
    workers: int
    nodes: int
    used: int
    predicted: int | None
    sent: int
    why: str
    wrong: str

    def __str__(self) -> str:
        predicted = "?" if self.predicted is None else f"{self.predicted:,}"
        said = self.wrong or "equal"
        return (
            f"{self.case:28}{self.workers:8}{self.nodes:7}{self.used:6}{predicted:>14}{self.sent:>14,}  {said}"
            f"{self.why and f' ({self.why})'}"
        )


def row(case: Case, workers: int, expected: Any, session: Any) -> Row:
    """Run a case in a session on a cluster."""
    found = case.run()
    team = session._backend._team
    plan = case.function.last_run.plan  # the one that has run: a call inspects loops that a plan may not have looked at
    places = tuple(team.group.nodes[: plan.runs_on]) if team else ()
    nodes = len({*places}) or 1
    estimate = plan.estimate(nodes=nodes)
    is_even = places == tuple(sorted(places, key=places.index)) and evenly(places)
    sent = team.sent_bytes if team and plan.runs_on > 1 else 0
    used = max((loop.nodes for loop in estimate.loops), default=1)
    why = "; ".join(dict.fromkeys(loop.why_one_node for loop in estimate.loops if loop.why_one_node))
    wrong = "" if found == expected else "other bits than on threads"
    if not wrong and is_even and estimate.bytes is not None and estimate.bytes != sent:
        wrong = "sent something else than predicted"
    if not wrong and used < nodes and not why:
        wrong = "uses one node, and nothing says why"
    return Row(case.name, workers, nodes, used, estimate.bytes if is_even else None, sent, why, wrong)


def evenly(places: tuple[str, ...]) -> bool:
    """Whether workers are shared out among nodes as an estimate takes them to be."""
    names = tuple(dict.fromkeys(places))
    return places == tuple(names[worker * len(names) // len(places)] for worker in range(len(places)))


def rows(nodes: int, only: str) -> Iterator[Row]:
    """All cases on a cluster of so many nodes, on as many workers as its plans take of 1, 2 and 4."""
    chosen = [case for case in all_cases() if only in case.name]
    with cluster(nodes) as address:
        for workers in (count for count in WORKERS if count >= nodes or count == max(WORKERS)):
            expected = {}
            with orion.session("threads", workers, force_parallel=True):
                for case in chosen:
                    expected[case.name] = case.run()
            with orion.session("ray", workers, address=address, force_parallel=True) as session:
                for case in chosen:
                    yield row(case, workers, expected[case.name], session)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, choices=[*CLUSTERS], action="append")
    parser.add_argument("--only", default="", help="cases with this in their name")
    options = parser.parse_args()
    start, wrong, count, several = perf_counter(), 0, 0, 0
    print(f"{'case':28}{'workers':>8}{'nodes':>7}{'used':>6}{'predicted':>14}{'sent':>14}")
    for nodes in options.nodes or CLUSTERS:
        for one in rows(nodes, options.only):
            print(one, flush=True)
            wrong, count, several = wrong + bool(one.wrong), count + 1, several + (one.used > 1)
    seconds = perf_counter() - start
    print(f"{count} runs, {count - wrong} right, {several} on several nodes, {seconds:.0f} s, {os.cpu_count()} CPUs")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
