"""Loops run in another order than they are written in: what a plan says of them, and its proof."""

import re
from collections.abc import Callable
from dataclasses import replace

import islpy as isl
import numpy as np
import pytest

import orion
from orion.cost.candidate import Strategy
from orion.errors import PlanError
from orion.inspect.data import plan_to_dict
from orion.inspect.html.html import plan_html
from orion.inspect.pictures.svg import plan_svg
from orion.inspect.text.parts import PROOF, lines_of
from orion.inspect.text.telling import but_for
from orion.inspect.text.text import plan_text
from orion.ir.program import OfSource
from orion.plan.explain import Told, blocking_reasons, witness_pair
from orion.plan.plan import LoopPlan, Reordered
from orion.plan.source_plans import coordinate_formulas, formulas, main_part, source_plans
from orion.planned import Plan
from tests.inspect_loops import history, plan_of, pull, schedules_of, skewed, stencil, two_products

REWRITTEN = (skewed, two_products, history)
every_rewritten = pytest.mark.parametrize("function", REWRITTEN, ids=lambda function: function.__name__)
INSIDE_NAMES = re.compile(r"\bx\d+\b|_first\d|_end\d")


def whole(function) -> Plan:
    """A plan that can be asked for schedules; sizes are small enough for serial orders."""
    arguments = {
        skewed: (np.zeros((14, 14)), 5),
        two_products: (np.zeros((9, 7)), np.zeros(7), np.zeros(9), np.zeros(7), np.zeros(9)),
        history: (np.zeros(5), np.zeros(40)),
    }[function]
    with orion.session(workers=4, force_parallel=True):
        return orion.parallel_for(function).plan(*arguments)


@every_rewritten
def test_planned_loops_with_one_origin_are_one_loop(function):
    plan = plan_of(function)
    (loop,) = source_plans(plan)
    assert loop.parts == plan.loops
    assert loop.nest.form == OfSource(())
    assert loop.nest.span.line == function.__code__.co_firstlineno + 1
    assert loop.dependences == plan.loops[0].form.origin.analysis.dependences
    assert loop.runs_on == max(part.runs_on for part in loop.parts)
    assert len(set(loop.reasons)) == len(loop.reasons)
    arrays = [placement.array for placement in loop.placements]
    assert sorted(arrays) == sorted({p.array for part in loop.parts for p in part.placements})


def test_the_strategy_is_the_weakest_of_what_is_shared_out():
    loops = {function: source_plans(plan_of(function))[0] for function in REWRITTEN}
    strategies = {function: [part.strategy for part in loop.parts] for function, loop in loops.items()}
    assert strategies == {skewed: ["wavefront"], two_products: ["1d", "1d"], history: ["serial", "independent"]}
    assert [loop.strategy for loop in loops.values()] == ["wavefront", "1d", "independent"]


@every_rewritten
def test_the_names_of_new_loops_are_never_shown(function):
    plan = plan_of(function)
    data = plan_to_dict(plan)
    for loop in data["loops"]:
        for dependence in loop["dependences"]:
            dependence.pop("relation")
    view = re.sub(r"<[^>]+>", " ", plan_html(plan, schedules_of(plan, function)))
    for text in (plan_text(plan), view, str(data)):
        assert not INSIDE_NAMES.search(text)


@every_rewritten
def test_the_text_says_why_the_result_stays_the_same(function):
    text = " ".join(plan_text(plan_of(function)).split())
    assert PROOF in text
    assert "as written: the result is that of the loop run from its first iteration to its last" in text


def test_parts_are_told_by_their_source_lines():
    loop = source_plans(plan_of(two_products))[0]
    first = loop.nest.span.line
    assert [lines_of(part.nest) for part in loop.parts] == [(first + 3,), (first + 1, first + 4)]
    text = plan_text(plan_of(two_products))
    assert f"1. line {first + 3}, `s[j] += r[i] * A[i, j]`: 1d" in text
    assert f"2. lines {first + 1}, {first + 4}: 1d" in text


def test_rounds_are_told_by_the_variable_of_the_source():
    text = plan_text(plan_of(history))
    assert "for each t, one after another:" in text
    assert "run once, on one worker" in text


def test_every_for_has_its_verdict():
    lines = plan_text(plan_of(history)).split("\n\n", 1)[1].splitlines()  # below the tree
    lines = [line.removeprefix("  each for").strip() for line in lines if re.search("for .* in r.*  ", line)]
    found = [re.sub(r" {2,}", "|", line) for line in lines]
    assert found == [
        "for t in range(means.shape[0])|not parallel by itself: carries dependences over a",
        "for i in range(a.shape[0])|not parallel by itself: carries dependences over s",
        "for i in range(a.shape[0])|parallel by itself",
    ]


def test_the_axes_of_the_picture_are_formulas():
    plan = plan_of(skewed)
    loop = source_plans(plan)[0]
    names = formulas(main_part(loop))
    assert names == ("_t", "_t + i", "2 * _t + i + j")
    picture = plan_svg(loop, schedules_of(plan, skewed)[0])
    assert f">{names[1]} ↓</text>" in picture
    assert f">{names[2]} →</text>" in picture


def test_the_picture_of_several_parts_says_which_one_it_is():
    plan = plan_of(history)
    line = plan.loops[0].form.origin.nest.span.line
    assert f"part 2 of 2, line {line + 6}; independent" in plan_svg(source_plans(plan)[0], None)


def test_data_has_the_parts():
    (loop,) = plan_to_dict(plan_of(history))["loops"]
    once, shared = loop["parts"]
    assert (once["is_single"], once["coordinates"], once["blocks"]) == (True, [], [])
    assert (shared["around"], shared["coordinates"], shared["space"]) == (["t"], ["i"], "i")
    assert (loop["space"], loop["time"], loop["dimensions"]) == (None, [], ["t"])


@every_rewritten
def test_schedules_and_serial_orders(function):
    plan = whole(function)
    schedule = plan.schedule(workers=2)
    assert schedule.grid == main_part(plan.loops[0]).cuts
    order = plan.serial_order(workers=2)
    assert order.tolist() == sorted(order.tolist())
    assert len(order) == {skewed: 5 * 12 * 12, two_products: 9, history: 5}[function] == plan.loops[0].iterations


# ---------------------------------------------------------------- the proof


def changed(plan: Plan, change: Callable[[LoopPlan], LoopPlan]) -> Plan:
    """A plan whose planned loops are changed."""
    loops = tuple(map(change, plan.function.loops))
    return replace(plan, function=replace(plan.function, loops=loops))


@every_rewritten
def test_plans_are_proved(function):
    whole(function).check()


@every_rewritten
def test_an_order_that_is_reversed_is_found(function):
    plan = whole(function)
    loops = [
        replace(loop, form=replace(loop.form, places=turned(loop.form.places)))
        if isinstance(loop.form, Reordered)
        else loop
        for loop in plan.function.loops
    ]
    broken = replace(plan, function=replace(plan.function, loops=tuple(loops)))
    with pytest.raises(PlanError, match="the generated loops"):
        broken.check()


def turned(places: str) -> str:
    """Places with their coordinates negated."""
    found = isl.UnionMap(places)
    length = isl.Map.from_union_map(found.reverse().domain().identity()).dim(isl.dim_type.in_)
    names = ", ".join(f"c{k}" for k in range(length))
    back = ", ".join(f"-c{k}" for k in range(length))
    return str(found.apply_range(isl.UnionMap(f"{{ [{names}] -> [{back}] }}")))


def test_dependences_that_planning_has_missed_are_found():
    """The checker reads them itself: without those that were found, the same tiles are proved and others refused."""
    plan = whole(skewed)
    (loop,) = plan.function.loops
    dropped = replace(loop, analysis=replace(loop.analysis, dependences=()))
    replace(plan, function=replace(plan.function, loops=(dropped,))).check()
    free = replace(dropped, strategy=Strategy.INDEPENDENT, tiles=replace(dropped.tiles, time=()))
    with pytest.raises(PlanError, match=r"`A\[.*` (written|read) in line \d+ and `A\["):
        replace(plan, function=replace(plan.function, loops=(free,))).check()


def test_tiles_that_do_not_wait_are_found_and_named_by_formulas():
    broken = changed(whole(skewed), lambda loop: replace(loop, tiles=replace(loop.tiles, time=())))
    with pytest.raises(PlanError, match=re.escape("_t + i in")) as caught:
        broken.check(workers=2)
    assert not INSIDE_NAMES.search(str(caught.value))


# ---------------------------------------------------------------- dependences


def test_witnesses_are_pairs_of_the_relation():
    (dependence,) = {d.kind: d for d in plan_of(pull).loops[0].dependences}.values()
    assert dependence.kind == "anti"
    assert witness_pair(dependence, 1, {}) == ((0,), (1,))


def test_the_graph_has_statements_as_nodes_and_an_edge_per_dependence():
    plan = whole(two_products)
    line = plan.loops[0].nest.span.line
    assert {data["line"] for _, data in plan.graph.nodes(data=True)} <= {line + 1, line + 3, line + 4}
    assert plan.graph.number_of_edges() == len(plan.dependences)
    for source, sink, data in plan.graph.edges(data=True):
        assert data["dependence"].source.span.line == plan.graph.nodes[source]["line"]
        assert data["dependence"].sink.span.line == plan.graph.nodes[sink]["line"]


def test_a_loop_with_anti_dependences_only_says_why_there_is_no_copy():
    plan = plan_of(pull)
    assert but_for(plan.loops[0]) == "parallel but for `a[i + 1]` in line 166, read before a later iteration writes it"
    assert "a copy of `a` made before the loop, 8,008 bytes, would cost more" in " ".join(plan_text(plan).split())
    assert plan_text(plan).partition("\n\n")[2].count("a copy of `a`") == 1
    assert not but_for(plan_of(skewed).loops[0])


def test_a_copy_is_no_help_where_the_read_needs_what_was_written():
    """`a[i + 1]` is written over by a later iteration (anti), and was written by an earlier one (flow)."""
    plan = plan_of(stencil)
    reasons = blocking_reasons(plan.loops[0].dependences, Told(plan.loops[0].nest))
    assert reasons
    assert not [reason for reason in reasons if "copy" in reason.hint]


@pytest.mark.parametrize(
    ("places", "expected"),
    [
        ("{ S0[t, i] -> [t, 2t + i] }", ("t", "2 * t + i")),
        ("[n] -> { S0[i] -> [i - n] }", ("i - n",)),
        ("[A__1] -> { S0[i] -> [A__1 - i, 3] }", ("A.shape[1] - i", "3")),
        ("{ S1[t] -> [t, 0]; S0[t, i] -> [t, i] }", ("t", "i")),
        ("{ S0[mod_] -> [-mod_ - 1] }", ("-mod - 1",)),
    ],
)
def test_formulas(places, expected):
    assert coordinate_formulas(places, {"mod_": "mod"}) == expected
