"""A plan as plain data, for tools: dicts, lists, strings, numbers, True, False and None, nothing else."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from orion.arrays.exchange import Exchange
from orion.arrays.policies import LocalSgd
from orion.cost.local_arrays import SizedLocalArray
from orion.cost.placement import Placement
from orion.dependence.access import Access, Choice, Dependence
from orion.inspect.text.fors import verdicts_of
from orion.inspect.text.parts import lines_of
from orion.inspect.text.telling import exits_of, inductions_of, rows_of, scans_of, stands_of
from orion.inspect.text.where import where_the_work_is
from orion.inspect.tree.data import tree_to_dict
from orion.inspect.tree.view import Tree, tree_of
from orion.ir.constants import constant_value
from orion.ir.function import InBlocks, Induction, Rows
from orion.ir.printer import print_expr
from orion.ir.replicas import Replica
from orion.ir.types import ArgumentType, ArrayType, ScalarType
from orion.plan.conditions import conditions_in_words
from orion.plan.deal import Deal, Even
from orion.plan.explain import Told, possible_pair
from orion.plan.iterations import values_of
from orion.plan.parallelism import Parallelism, parallelism
from orion.plan.plan import (
    Considered,
    FunctionPlan,
    Inside,
    Inspected,
    Listed,
    LoopPlan,
    Member,
    ReorderedSingle,
    Verdict,
    Weighed,
    is_of_source,
)
from orion.plan.shares import share_of, shares
from orion.plan.source_plans import formulas, in_formulas, source_plans
from orion.reasons import Reason
from orion.source import Span

FORMAT = 1
"""Goes up when a key changes its meaning or goes away; new keys may come at any time."""


def plan_to_dict(plan: FunctionPlan, tree: Tree | None = None) -> dict[str, Any]:
    """Return the plan of a function as plain data. `tree` is that of its loops; it is made from the plan alone where
    none is given.

    Units: times are nanoseconds (`…_ns`, `nanoseconds`) or seconds (in `tree`), sizes are bytes. What is not known
    before sizes are given is None. Lines count from 1, columns from 0.

    The function:

    - `format`: 1; it goes up when a key changes its meaning
    - `function`, `file`, `line`: its name and place
    - `parameters`: their names; `arguments`: per name the `kind` ("dense", "sparse" or "scalar"), `dtypes` and the
      number of `dimensions`; `options`: the arguments that are strings or None
    - `makes`: the arrays that it makes: `array`, `dtype`, `shape`, `bytes`, `is_returned`, `line`
    - `shuffled`: the arguments that were shuffled before, by their last shuffle: `array`, `epoch`, `exchange`, `seed`,
      `ranks`, `elements`, how many of these were `sent` to another rank, and their `bytes`
    - `conditions`: expressions of Python that hold of all calls which run by this plan

    What the plan says as a whole:

    - `is_parallel`: the verdict as one truth value
    - `parallelism`: its `extent` ("parallel", "parallel, too small to share", "serial at these sizes", "partly
      parallel", "serial" or "no loop to share out"), the `share` of the predicted work that is shared out, `runs_on`,
      the `nanoseconds` on one worker, and the spans of `serial` loops
    - `where`: the first line of the text, which says where the work is
    - `tree`: the loops as the text has them first. `verdict`; `predicted` and `measured`: the seconds of the call, by
      `f.measure` and of `f.last_run`; `unpredicted`: why the first are not known though the function was measured;
      `lines` and `options`
    - of `lines`, one per `for` of the source or array statement that runs as one: `line`, `depth`, `text` as written,
      `how` it runs, `parts` (a sentence per planned loop where several stand for it), `share` of the measured or
      predicted time (None of loops around others or further in), `predicted`, `measured`
    - of `options`, one per loop that an option would change: the `option`, the `line`, and `how` the loop would run
    - `considered`: other ways to run it that were not taken: `name`, `nanoseconds`, `reason`
    - `loops`: one per loop of the source, in textual order, with the keys below

    How a loop runs:

    - `line`, `dimensions` (names of the loop dimensions), `sparse_array` (whose elements it goes over, or None)
    - `is_written_by_user`: False for statements between loops; `is_inside`: True for a loop in such statements, which
      one worker runs
    - `strategy`, `is_parallel`, `ordered`, `runs_on`; `share`: its part of the predicted time
    - `space` and `time`: names of the dimensions that are shared out, and along which tiles follow one another;
      `blocks`: their number per dimension; `iterations`
    - `is_dynamic`: workers take tiles of each other
    - `deal`: the shares of workers where they follow measured times, else None. `blocks` of each worker, their `speeds`
      (the fastest has 1), and `since` which call, from 1
    - `weighed_by`: the arrays by whose contents blocks have about as much work each
    - `inspection`: the tiles found by looking at subscripts, else None. The `arrays` that were looked at, `kind`
      ("components", "pieces", "levels", "colours" or "blocks"), the number of `tiles`, `depth` (iterations of the
      longest chain), `rounds` of a call; per round the predicted `serial_ns` as written and `tiles_ns` in tiles;
      `inspection_ns`, measured
    - `parts`: the loops that stand for one in another order, in turn, else empty. `lines`, `strategy`, `coordinates`
      (formulas in the user's variables), `around` (those of the serial loops around), `space`, `time`, `blocks`,
      `iterations` (of the box around them, an upper bound), `runs_on`, `is_single` (one worker runs its statements,
      once per round). The loop itself then has no `space` and no `time`
    - `fused_with`: the neighbours that it runs as one with, else None: their `lines`, the `arrays` that are used again
      while a cache has them, and `bytes_saved`

    What its iterations have in common:

    - `verdicts`: per `for` its `line`, `is_parallel`, the arrays that it `carries` dependences over, `copies` (arrays
      of which copies make it parallel), `private` (arrays of which each iteration needs its own), and `reasons` that
      are not about arrays
    - `dependences`: `array`, `kind`, `source` and `sink` (accesses), `distance`, `direction`, `exact`, `relation` (isl
      text, by coordinates; the number of the trip, from 0, where a step is not 1), and `witness`: the values of the
      variables in two iterations that conflict, or None
    - `reductions`: `name`, `operator`, `line`; `element_sums`: `array`, `operator`, the number of `copies`
    - `choices`, scalars taken from one iteration: `names`, `kind` ("min", "max", "last" or "first"), `comparison` (the
      operator or None), `line`
    - `exits`: the `word` and `line` of what ends the loop early where later iterations may run
    - `scans`: the `names` that iterations hand on, the iterations of a `block`, and `is_rounded`: sums of floats are
      rounded in blocks
    - `inductions`: `name`, `line`, and the `step` per trip, a number or an expression as text
    - `rows`, flattened arrays: `array`, `widths` (lengths of rows), and a subscript as `written` and as `shown`, `line`
    - `names` of the source that stand for other arrays here: `name`, `array`
    - `private` and `carried`: names of scalars; `private_arrays`: names of arrays of which each tile has its own
    - `copied_in`: the `array`, its `copy` made before the loop, and the `reads` that see the copy

    Where its data lives, and why not more:

    - `relaxed`: None where no update may be late. `arrays` (`array`, `buffer`, `helpers`, `how`: "dense", "listed" or
      "at once", `line`, and `send`: the `order`, `batch` and `bandwidth`, in bytes per second, of what goes to other
      nodes between the messages of `max_delay`), `max_delay`, `every` (a worker applies its updates after so many
      iterations), `deterministic`, and `served`: arrays of which each node has what its tiles touch (`array`, and `by`
      which arrays that is known)
    - `read_in_part`: the same of arrays that are only read
    - `replicas`: `name` of the copy, `array`, `mode` (that of `orion.elastic`, or "local_sgd"), `sync_every`, and
      either `alpha`, the `bound` up to which it is stable, `momentum` and `overlap`, or `outer`: step and momentum, or
      None
    - `placements`: `array`, `kind`, `axis`, `loop_dimension`, `is_written`, `halo`, `bytes_moved`
    - `reasons`: `kind` ("blocks", "rules out", "sizes" or "note"), `code`, `title`, `message`, `hint`, `spans`

    An access is its `text`, `is_write`, `is_may` (it may not happen), `exact` and `span`. A span is `file`, `line`,
    `column`, `end_line`, `end_column`.
    """
    function, loops, found = plan.program.function, source_plans(plan), shares(plan)
    verdict, tree = parallelism(plan), tree or tree_of(plan)
    return {
        "format": FORMAT,
        "function": function.name,
        "parameters": list(function.given),
        "file": function.span.file,
        "line": function.span.line,
        "arguments": {name: _argument(kind) for name, kind in plan.types if name in function.given},
        "options": dict(function.words),
        "makes": [_made(one) for one in plan.local_arrays],
        "shuffled": [_shuffled(array, one) for array, one in plan.shuffled],
        "conditions": list(conditions_in_words(function, dict(plan.types))),
        "is_parallel": verdict.is_parallel,
        "parallelism": _parallelism(verdict),
        "where": where_the_work_is(plan, tree.shared),
        "tree": tree_to_dict(tree),
        "considered": [_considered(one) for one in plan.considered],
        "loops": [_loop(loop, plan, share_of(loop, found)) for loop in loops],
    }


def _parallelism(one: Parallelism) -> dict[str, Any]:
    return {
        "extent": str(one.extent), "share": one.share, "runs_on": one.runs_on, "nanoseconds": one.nanoseconds,
        "serial": [_span(span) for span in one.serial],
    }  # fmt: skip


def _made(one: SizedLocalArray) -> dict[str, Any]:
    shape = None if one.shape is None else list(one.shape)
    return {
        "array": one.name, "dtype": one.dtype, "shape": shape, "bytes": one.nbytes, "is_returned": one.is_returned,
        "line": one.span.line,
    }  # fmt: skip


def _shuffled(array: str, one: Exchange) -> dict[str, Any]:
    return {
        "array": array, "epoch": one.epoch, "exchange": one.fraction, "seed": one.seed, "ranks": one.ranks,
        "elements": one.elements, "sent": int(one.sent.sum()), "bytes": one.bytes,
    }  # fmt: skip


def _considered(one: Considered) -> dict[str, Any]:
    return {"name": one.name, "nanoseconds": one.nanoseconds, "reason": _reason(one.reason)}


def _argument(kind: ArgumentType) -> dict[str, Any]:
    if isinstance(kind, ScalarType):
        return {"kind": "scalar", "dtypes": [kind.dtype], "dimensions": 0}
    if isinstance(kind, ArrayType):
        return {"kind": "dense", "dtypes": [kind.dtype], "dimensions": kind.ndim}
    return {"kind": "sparse", "dtypes": list(kind.value_dtypes), "dimensions": kind.ndim}


def _loop(loop: LoopPlan, plan: FunctionPlan, share: float) -> dict[str, Any]:
    dims, scalars = loop.nest.dims, loop.analysis.scalars
    return {
        "line": loop.nest.span.line,
        "dimensions": list(dims),
        "sparse_array": loop.nest.elements.array if loop.nest.elements else None,
        "is_written_by_user": is_of_source(loop),
        "is_inside": isinstance(loop.form, Inside),
        "strategy": str(loop.strategy),
        "is_parallel": loop.is_parallel,
        "ordered": loop.ordered,
        "space": None if loop.space is None else dims[loop.space],
        "time": [dims[dim] for dim in loop.time],
        "blocks": list(loop.cuts),
        "iterations": loop.iterations,
        "inspection": _inspection(loop),
        "runs_on": loop.runs_on,
        "is_dynamic": loop.is_dynamic,
        "deal": _deal(loop.deal),
        "weighed_by": list(loop.tiles.arrays) if isinstance(loop.tiles, Weighed) else [],
        "share": round(share, 4),
        "parts": [_part(part) for part in loop.parts],
        "fused_with": _fused_with(loop),
        "verdicts": [_verdict(verdict) for verdict in verdicts_of(loop, plan)],
        "dependences": [_dependence(dependence, loop) for dependence in loop.dependences],
        "reductions": [{"name": r.name, "operator": r.op, "line": r.span.line} for r in scalars.reductions],
        "choices": [_choice(choice) for choice in scalars.choices],
        "exits": [{"word": one.word, "line": one.span.line} for one in exits_of(loop)],
        "scans": [_scan(one) for one in scans_of(loop)],
        "inductions": [{"name": i.name, "step": _step(i), "line": i.span.line} for i in inductions_of(loop)],
        "names": [{"name": one.name, "array": one.array} for one in stands_of(loop)],
        "rows": [_rows(one) for one in rows_of(loop)],
        "private": list(scalars.private),
        "private_arrays": [array.name for array in loop.private_arrays],
        "relaxed": _relaxed(loop),
        "read_in_part": _listed(loop.read_in_part),
        "replicas": [_replica(one, loop.runs_on) for one in loop.nest.replicas],
        "copied_in": [
            {"array": one.array, "copy": one.copy, "reads": [print_expr(read) for read in one.reads]}
            for one in loop.nest.copied_in
        ],
        "element_sums": [{"array": c.array, "operator": c.op, "copies": c.count} for c in loop.copies],
        "carried": [name for name, _ in scalars.carried],
        "placements": [_placement(placement, loop) for placement in loop.placements],
        "reasons": [_reason(reason) for reason in loop.reasons],
    }


def _relaxed(loop: LoopPlan) -> dict[str, Any] | None:
    relaxed = loop.relaxed
    if not relaxed:
        return None
    arrays = [
        {
            "array": one.buffered.array, "buffer": one.buffered.source, "helpers": list(one.buffered.helpers),
            "how": str(one.how), "line": one.buffered.span.line, "send": asdict(one.buffered.sending),
        }
        for one in relaxed.arrays
    ]  # fmt: skip
    return {
        "arrays": arrays, "max_delay": relaxed.max_delay, "every": relaxed.every,
        "deterministic": relaxed.deterministic,
        "served": _listed(loop.served),
    }  # fmt: skip


def _listed(arrays: Iterable[Listed]) -> list[dict[str, Any]]:
    return [{"array": one.array, "by": list(one.announcer.lists.reads)} for one in arrays]


def _replica(one: Replica, workers: int) -> dict[str, Any]:
    policy = one.policy
    told = {"name": one.name, "array": one.array, "mode": policy.name, "sync_every": policy.sync_every}
    if isinstance(policy, LocalSgd):
        return {**told, "outer": [policy.step, policy.momentum] if policy.step else None}
    return {
        **told, "alpha": policy.alpha_of(workers), "bound": policy.bound(workers), "momentum": policy.momentum,
        "overlap": policy.overlaps,
    }  # fmt: skip


def _deal(deal: Deal) -> dict[str, Any] | None:
    """Unequal shares; None of a loop that has equal ones."""
    if isinstance(deal, Even):
        return None
    return {"blocks": list(deal.blocks), "speeds": list(deal.speeds), "since": deal.since}


def _inspection(loop: LoopPlan) -> dict[str, Any] | None:
    """The tiles that were found by looking at what subscripts are read from; None of a loop that runs otherwise."""
    if not isinstance(loop.tiles, Inspected):
        return None
    found = loop.tiles.inspection
    return {
        "arrays": list(loop.tiles.inspectable.reads), "kind": found.kind.name.lower(), "tiles": found.tiles,
        "depth": found.depth, "serial_ns": found.serial_ns, "tiles_ns": found.tiles_ns,
        "rounds": found.rounds, "inspection_ns": found.inspection_ns,
    }  # fmt: skip


def _scan(one: InBlocks) -> dict[str, Any]:
    return {"names": list(one.names), "block": one.length, "is_rounded": one.is_rounded}


def _step(induction: Induction) -> int | str:
    known = constant_value(induction.step)
    return print_expr(induction.step) if known is None else known


def _fused_with(loop: LoopPlan) -> dict[str, Any] | None:
    if not isinstance(loop.form, Member):
        return None
    why = loop.form.fused_with
    return {"lines": list(why.lines), "arrays": list(why.arrays), "bytes_saved": why.saved}


def _choice(choice: Choice) -> dict[str, Any]:
    comparison = choice.comparison
    kind = choice.op if comparison is None else "max" if comparison[0] == ">" else "min"
    return {"names": list(choice.names), "kind": kind, "comparison": comparison, "line": choice.span.line}


def _verdict(verdict: Verdict) -> dict[str, Any]:
    carries = list(dict.fromkeys(dependence.array for dependence in verdict.carried))
    return {
        "line": verdict.line,
        "is_parallel": verdict.is_parallel,
        "carries": carries,
        "copies": list(verdict.copies),
        "private": list(verdict.private),
        "reasons": [_reason(reason) for reason in verdict.reasons],
    }


def _part(part: LoopPlan) -> dict[str, Any]:
    shown, is_single = in_formulas(part), isinstance(part.form, ReorderedSingle)
    dims = () if is_single else shown.nest.dims
    return {
        "lines": list(lines_of(part.nest)),
        "strategy": str(part.strategy),
        "coordinates": list(dims),
        "around": list(formulas(part)[: -len(dims)]) if dims else [],
        "space": None if part.space is None else dims[part.space],
        "time": [dims[dim] for dim in part.time],
        "blocks": [] if is_single else list(part.cuts),
        "iterations": part.iterations,
        "runs_on": part.runs_on,
        "is_single": is_single,
    }


def _dependence(dependence: Dependence, loop: LoopPlan) -> dict[str, Any]:
    told = Told(loop.nest, dict(loop.known))
    pair = possible_pair(dependence, told)
    return {
        "witness": None if pair is None else [values_of(iteration, loop.nest, told.known) for iteration in pair],
        "array": dependence.array,
        "kind": dependence.kind,
        "source": _access(dependence.source),
        "sink": _access(dependence.sink),
        "distance": list(dependence.distance),
        "direction": list(dependence.direction),
        "exact": dependence.exact,
        "relation": dependence.relation,
    }


def _rows(one: Rows) -> dict[str, Any]:
    return {
        "array": one.array,
        "widths": list(map(print_expr, one.widths)),
        "written": one.written,
        "shown": one.shown,
        "line": one.span.line,
    }


def _access(access: Access) -> dict[str, Any]:
    return {
        "text": access.text,
        "is_write": access.is_write,
        "is_may": access.is_may,
        "exact": access.exact,
        "span": _span(access.span),
    }


def _placement(placement: Placement, loop: LoopPlan) -> dict[str, Any]:
    return {
        "array": placement.array,
        "kind": str(placement.kind),
        "axis": placement.dim,
        "loop_dimension": None if placement.loop_dim is None else loop.nest.dims[placement.loop_dim],
        "is_written": placement.is_written,
        "halo": list(placement.halo),
        "bytes_moved": placement.bytes_moved,
    }


def _reason(reason: Reason) -> dict[str, Any]:
    return {
        "kind": str(reason.kind),
        "code": reason.code,
        "title": reason.title,
        "message": reason.message,
        "hint": reason.hint,
        "spans": [_span(span) for span in reason.spans],
    }


def _span(span: Span) -> dict[str, Any]:
    return {
        "file": span.file,
        "line": span.line,
        "column": span.column,
        "end_line": span.end_line,
        "end_column": span.end_column,
    }
