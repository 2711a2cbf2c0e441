"""The proof of the passes of a scan: it refuses texts whose earlier passes leave out, or add, what counts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import orion
from orion.errors import PlanError
from orion.ir.function import Function
from orion.ir.nodes import Assign, Break, For, If, Subscript, Var, every
from orion.ir.rewriting import expand
from orion.rewrites.scans import apply, find
from orion.typing.infer import infer_types
from orion.verify.scans import prove_scans


def recurrence(x, y, out):
    s, peak = 1.0, 0.0
    for i in range(len(x)):
        z = np.sqrt(y[i])
        if x[i] > 1:
            z = z + 1
        w = abs(out[i])
        if x[i] > 0:
            s = 0.5 * s + z
        if w > peak:
            peak = w
        out[i] = s + peak
    return s, peak


@pytest.fixture(scope="module", params=[2, 1])
def planned(request):
    """The function in blocks, in two passes and in one, with the types of its names."""
    with pytest.MonkeyPatch.context() as patch:
        for module, name, value in ((apply, "LEAST_NS", 1), (find, "MEMORY_NS", 0.0), (find, "GAIN", 0.0)):
            patch.setattr(module, name, value)
        with orion.session(workers=request.param):
            given = np.ones(9_000), np.ones(9_000), np.ones(9_000)
            plan = orion.parallel_for(recurrence).plan(*given).function
    assert plan.program.function.in_blocks[0].is_twice == (request.param == 2)
    return plan.program.function, dict(plan.types)


def check(function: Function, types) -> None:
    prove_scans(function, infer_types(function, types))


def changed(function: Function, change) -> Function:
    """The function with another first loop over blocks."""
    at = next(k for k, one in enumerate(function.body) if isinstance(one, For))
    done = []

    def once(statement):
        if done or not (new := change(statement)):
            return (statement,)
        done.append(statement)
        return new

    loop = expand((function.body[at],), once)
    assert done
    return replace(function, body=(*function.body[:at], *loop, *function.body[at + 1 :]))


def given_to(name):
    return lambda one: isinstance(one, Assign) and isinstance(one.target, Var) and one.target.name == name


def test_what_is_run_is_proved(planned):
    check(*planned)


@pytest.mark.parametrize("name", ["z", "w"])
def test_a_statement_that_is_left_out_is_missed(planned, name):
    function, types = planned
    first = changed(function, lambda one: (replace(one, target=Var("other", one.span)),) if given_to(name)(one) else ())
    with pytest.raises(PlanError, match="does not do what the iterations do"):
        prove_scans(first, infer_types(function, types))


def test_another_test_is_seen(planned):
    function, types = planned
    first = changed(function, lambda one: one.body if isinstance(one, If) and given_to("z")(one.body[0]) else ())
    with pytest.raises(PlanError, match="does not do what the iterations do"):
        check(first, types)


def test_a_store_in_the_first_pass_is_seen(planned):
    function, types = planned
    store = next(
        one
        for one in every(Assign, *function.body)
        if isinstance(one.target, Subscript) and one.target.base.name == "out"
    )
    first = changed(function, lambda one: (one, replace(store, value=Var("z", one.span))) if given_to("z")(one) else ())
    with pytest.raises(PlanError, match="an earlier pass of a scan writes out"):
        check(first, types)


def test_what_is_handed_on_is_not_read(planned):
    function, types = planned
    first = changed(function, lambda one: (one, replace(one, value=Var("s", one.span))) if given_to("z")(one) else ())
    with pytest.raises(PlanError, match="needs `s`, which is handed on"):
        check(first, types)


def test_elements_that_are_read_after_they_are_stored_are_seen(planned):
    function, types = planned
    body = expand(function.body, lambda one: (one, one) if isinstance(one, Assign) and _is_out(one.target) else (one,))
    with pytest.raises(PlanError, match="reads `out`, of which the iterations store elements"):
        check(replace(function, body=body), types)


def _is_out(target):
    return isinstance(target, Subscript) and target.base.name == "out"


def test_a_way_out_of_an_inner_loop_is_seen(planned):
    function, types = planned
    body = expand(function.body, lambda one: (one, Break(one.span)) if given_to("w")(one) else (one,))
    with pytest.raises(PlanError, match="may leave its iterations early"):
        check(replace(function, body=body), types)


def reads_back(x, out):
    s = 0.0
    for i in range(len(x)):
        out[i] = s
        z = out[i]
        s = 0.5 * s + 0.1 * z + x[i]


def test_a_call_does_not_run_passes_that_lack_statements(monkeypatch):
    """Though the rewrite finds them right: a call refuses what it cannot prove, and does not compute wrong numbers."""
    scans_of = find.scans_of
    monkeypatch.setattr(find, "scans_of", lambda body, names, written: scans_of(body, names, ()))
    for module, name, value in ((apply, "LEAST_NS", 1), (find, "MEMORY_NS", 0.0), (find, "GAIN", 0.0)):
        monkeypatch.setattr(module, name, value)
    with orion.session(workers=2, force_parallel=True), pytest.raises(PlanError, match="pass"):
        orion.parallel_for(reads_back)(np.ones(30_000), np.zeros(30_000))
