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
    """Return the plan of a function as plain data. `tree` is that of its loops; by default it is made from the plan
    alone.

    Times are nanoseconds (`…_ns`, `nanoseconds`), or seconds in `tree`. Sizes are bytes. A value that depends on
    unknown sizes is None. Lines count from 1, columns from 0.

    The function:

    - `format`: 1; it goes up when a key changes its meaning.
    - `function`, `file`, `line`: name and place.
    - `parameters`: their names.
    - `arguments`: per name its `kind` ("dense", "sparse" or "scalar"), `dtypes` and number of `dimensions`.
    - `options`: the arguments that are strings or None.
    - `makes`: arrays that it makes: `array`, `dtype`, `shape`, `bytes`, `is_returned`, `line`.
    - `shuffled`: arguments with a last shuffle: `array`, `epoch`, `exchange`, `seed`, `ranks`, `elements`. `sent` is
      the number of elements that went to another rank, `bytes` their size.
    - `conditions`: Python expressions that hold for all calls with this plan.

    The plan as a whole:

    - `is_parallel`: the verdict as one truth value.
    - `parallelism`: its `extent`, `share`, `runs_on`, `nanoseconds` and `serial`. `extent` is "parallel", "parallel,
      too small to share", "serial at these sizes", "partly parallel", "serial" or "no loop to share out". `share` is
      the part of the predicted work that is shared out. `nanoseconds` are those on one worker, `serial` the spans of
      serial loops.
    - `where`: the first line of the text, about where the work is.
    - `tree`: the loops at the top of the text: `verdict`, `predicted`, `measured`, `unpredicted`, `lines` and
      `options`. `predicted` are seconds of the call by `f.measure`, `measured` those of `f.last_run`. `unpredicted`
      says why a measured function has no prediction.
    - `lines`, in `tree`: one per `for` of the source, or array statement that runs as a loop. Keys: `line`, `depth`,
      `text` as written, `how` it runs, `parts`, `share`, `predicted`, `measured`. `parts` has a sentence per planned
      loop where several replace it. `share` is that of the measured or predicted time; enclosing and inner loops have
      None.
    - `options`, in `tree`: one per loop that an option would change: the `option`, the `line`, and `how` the loop would
      run.
    - `considered`: alternatives that were not chosen: `name`, `nanoseconds`, `reason`.
    - `loops`: one per loop of the source, in textual order, with the keys below.

    How a loop runs:

    - `line`, `dimensions`: its place, and the names of the loop dimensions.
    - `sparse_array`: the array whose elements it iterates over, or None.
    - `is_written_by_user`: False for statements between loops.
    - `is_inside`: True for a loop in such statements, which one worker runs.
    - `strategy`, `is_parallel`, `ordered`, `runs_on`: as in `plan.loops`.
    - `share`: its part of the predicted time.
    - `space`, `time`: names of the dimensions that are shared out, and along which tiles follow one another.
    - `blocks`, `iterations`: the number of blocks per dimension, and of iterations.
    - `is_dynamic`: workers take tiles of each other.
    - `deal`: None, or the assignment by measured times: `blocks` per worker, their `speeds` (the fastest has 1), and
      `since` which call, from 1.
    - `weighed_by`: arrays whose contents decide the blocks, so that all have about as much work.
    - `inspection`: None, or the tiles found by inspection of `arrays`. `kind` is "components", "pieces", "levels",
      "colours" or "blocks". `tiles` is their number, `depth` the iterations of the longest chain, `rounds` those of a
      call. `serial_ns` and `tiles_ns` are predicted times of a round, as written and in tiles. `inspection_ns` was
      measured.
    - `parts`: the loops that replace a reordered one, in turn. Keys: `lines`, `strategy`, `coordinates` (formulas in
      the user's variables), `around` (those of the enclosing serial loops), `space`, `time`, `blocks`, `iterations`,
      `runs_on`, `is_single`. `iterations` are those of the bounding box. `is_single`: one worker runs its statements,
      once per round. The reordered loop itself has no `space` and no `time`.
    - `fused_with`: None, or the neighbours that it is fused with: their `lines`, the `arrays` that are used again from
      a cache, and `bytes_saved`.

    What its iterations share:

    - `verdicts`: per `for` its `line`, `is_parallel`, and arrays: `carries` has those with carried dependences,
      `copies` those that copies make parallel, `private` those that each iteration needs for itself. `reasons` are
      those that are not about arrays.
    - `dependences`: `array`, `kind`, `source` and `sink` (accesses), `distance`, `direction`, `exact`, `relation`,
      `witness`. `relation` is isl text in coordinates, which count iterations from 0 where a step is not 1. `witness`
      has the variables of two conflicting iterations, or is None.
    - `reductions`: `name`, `operator`, `line`.
    - `element_sums`: `array`, `operator`, the number of `copies`.
    - `choices`: scalars taken from one iteration: `names`, `kind` ("min", "max", "last" or "first"), `comparison` (the
      operator or None), `line`.
    - `exits`: `word` and `line` of statements that end the loop early, where later iterations may already run.
    - `scans`: the `names` that iterations hand on, and the iterations of a `block`. `is_rounded`: sums of floats are
      rounded in blocks.
    - `inductions`: `name`, `line`, and the `step` per iteration, a number or an expression.
    - `rows`: flattened arrays: `array`, `widths` (lengths of rows), `line`, and a subscript as `written` and as
      `shown`.
    - `names` of the source that stand for other arrays here: `name`, `array`.
    - `private`, `carried`: names of scalars. `private_arrays`: arrays that each tile has for itself.
    - `copied_in`: the `array`, its `copy` made before the loop, and the `reads` of the copy.

    Where its data lives, and why not more:

    - `relaxed`: None, or the late updates. `max_delay` is their bound; a worker applies its updates `every` so many
      iterations; `deterministic` is that of `orion.buffer`.
    - `arrays`, in `relaxed`: `array`, `buffer`, `helpers`, `line`, `send`, and `how`: "dense", "listed" or "at once".
      `send` has `order`, `batch` and `bandwidth` (bytes per second) of messages to other nodes that `max_delay` does
      not force.
    - `served`, in `relaxed`: arrays of which each node has the elements that its tiles access: `array`, and `by` which
      arrays these are known.
    - `read_in_part`: the same for arrays that are only read.
    - `replicas`: `name` of the copy, `array`, `mode` (that of `orion.elastic`, or "local_sgd") and `sync_every`.
      Elastic ones have `alpha`, its stable `bound`, `momentum` and `overlap`; others have `outer`, step and momentum or
      None.
    - `placements`: `array`, `kind`, `axis`, `loop_dimension`, `is_written`, `halo`, `bytes_moved`.
    - `reasons`: `kind` ("blocks", "rules out", "sizes" or "note"), `code`, `title`, `message`, `hint`, `spans`.

    An access has `text`, `is_write`, `is_may` (it may not happen), `exact` and `span`. A span has `file`, `line`,
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
