"""Workers that have other versions than the driver, or lack a module, are refused with what to do about it."""

import re

import numpy as np
import pytest

import orion
from orion.runtime.ray import group, same_programs
from orion.runtime.ray.actor import WorkerActor
from tests.trials import ALL

pytestmark = [pytest.mark.ray, pytest.mark.timeout(300)]

WORKERS = 2 if ALL else 1
"""Each refusal has all of them started anew, and the next call too."""


@orion.parallel_for
def add(a, x):
    for i in range(a.shape[0]):
        a[i] += x


@pytest.fixture(scope="module")
def actors():
    with orion.session("ray", WORKERS, force_parallel=True) as session:
        add(np.zeros(9), 1.0)
        yield session


def refused(session, message):
    """A call is refused once, with a message and without another error before it; the next one is right."""
    session._backend._leave_team()
    a = np.zeros(100)
    with pytest.raises(orion.ArgumentError, match=message) as told:
        add(a, 1.0)
    assert set(a) == {0.0}
    return told.value


def test_other_versions_are_named_with_those_here_and_the_node(actors, monkeypatch):
    name, there = "Orion", same_programs.own_versions()
    with monkeypatch.context() as patch:
        patch.setattr(same_programs, "own_versions", lambda: there | {name: "0.0.7"})
        versions = f"{name} {re.escape(there[name])} there, 0.0.7 here"
        message = rf"(?s)the workers on node [\d.]+ \(\w+\) have .*{versions}\n.*install {name.lower()}==0.0.7 there"
        refused(actors, message)
    a = np.zeros(100)
    add(a, 1.0)
    assert set(a) == {1.0}


def test_several_other_versions_are_told_together(monkeypatch):
    monkeypatch.setattr(same_programs, "node_text", lambda node: f"node {node}")
    here = same_programs.own_versions()
    assert [*here] == ["Orion", "Python", "NumPy", "Numba"]
    same_programs.refuse_others([here, here], ["a", "b"])
    with pytest.raises(orion.ArgumentError, match=r"node b have .* NumPy 1 there, .* here; Numba \? there, "):
        same_programs.refuse_others(
            [here, {"Orion": here["Orion"], "Python": here["Python"], "NumPy": "1"}], ["a", "b"]
        )


def test_a_node_without_what_workers_need_is_told_of_at_once(actors, monkeypatch):
    class Actor(WorkerActor):
        def __init__(self):
            raise ModuleNotFoundError("No module named 'orion.runtime.ray.actor'")

    with monkeypatch.context() as patch:
        patch.setattr(group, "WorkerActor", Actor)
        error = refused(actors, r"(?s)no worker can be made on node [\d.]+.*No module named 'orion.*install there")
    assert f"Orion {orion.__version__}" in str(error)
    a = np.zeros(100)
    add(a, 1.0)
    assert set(a) == {1.0}


def test_a_module_that_a_worker_lacks_is_named_with_the_node(actors, monkeypatch):
    class Actor(WorkerActor):
        def _load(self, *_):
            raise ModuleNotFoundError("No module named 'mine.helpers'")

    with monkeypatch.context() as patch:
        patch.setattr(group, "WorkerActor", Actor)
        refused(actors, r"(?s)node [\d.]+ \(\w+\) have no module `mine.helpers`.*runtime_env=.*path/to/mine\"")
    actors._backend._leave_team()
    a = np.zeros(100)
    add(a, 1.0)
    assert set(a) == {1.0}
