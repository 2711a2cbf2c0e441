"""`python -m orion audit PATH`: verdicts on `prange` loops, each race confirmed by running the program."""

import copy
import json
import os
import re
import sys
import textwrap
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orion.cli.cli import main
from tests.audit_programs import arguments_of, function_of, programs, whole_file
from tests.oracles.brute_force import record
from tests.oracles.random_nests import RandomNest, random_nests


def audit(capsys, path, *options):
    """The exit status, and what is printed."""
    capsys.readouterr()
    status = main(["audit", *options, str(path)])
    return status, capsys.readouterr().out


def audited(capsys, text, name="t.py"):
    """The loops of a text."""
    Path(name).write_text(text)
    return json.loads(audit(capsys, name, "--json")[1])["loops"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory):
    """The loops of the table by the names of their functions: audited once."""
    from orion.cli.audit.command import audited as loops_of
    from orion.cli.audit.report import _data

    path = tmp_path_factory.mktemp("audit") / "programs.py"
    path.write_text(whole_file())
    return {one.site.function: _data(one) for one in loops_of([path], ())}


@pytest.mark.parametrize("name", programs())
def test_each_program_has_its_verdict(name, verdicts):
    expected, _ = programs()[name]
    found = verdicts[name]
    assert found["verdict"] == expected, found
    assert (found["code"] is None) == (expected == "parallel")
    assert (found["condition"] is not None) == (expected == "conditional")
    assert ("race" in found) == (expected == "race")


def outcome(name, loop):
    function = function_of(name, loop)
    arguments = arguments_of(function)
    returned = function(**arguments)
    return [returned, *arguments.values()]


def backwards(*arguments):
    return reversed(range(*arguments))


def conflicts_of(name, sizes):
    """The pairs of iterations of the outermost loop that conflict, by the oracle, at these sizes."""
    function = function_of(name)
    arguments = arguments_of(function)
    arguments |= {key: value for key, value in sizes.items() if key in arguments}
    return record(as_range(function), arguments, 1).conflicts()


def as_range(function):
    """The same function with `range` for `prange`."""
    code = function.__code__.replace(
        co_names=tuple("range" if n == "prange" else n for n in function.__code__.co_names)
    )
    function.__code__ = code
    return function


def named(verdict):
    return [name for name, (expected, _) in programs().items() if expected == verdict]


NOT_RECORDED = {"whole", "alias", "view_above"}
"""Programs with names for parts of arrays, or operations on whole ones, that the recorder follows in another way."""


@pytest.mark.parametrize("name", named("race"))
def test_each_race_is_there_when_the_program_runs(name, verdicts):
    race = verdicts[name]["race"]
    if race["name"] == race["element"] or name in NOT_RECORDED:  # a scalar: another order has other results
        if race["effect"] != "lost update":
            assert not same(outcome(name, range), outcome(name, backwards))
        return
    first, second = (int(re.search(r"(-?\d+)$", text)[1]) for text in race["iterations"])  # or the number of a trip
    assert ((first,), (second,)) in conflicts_of(name, race["sizes"])


def same(one, other):
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def close(one, other):
    return all(
        a is b or np.allclose(np.asarray(a, float), np.asarray(b, float)) for a, b in zip(one, other, strict=True)
    )


@pytest.mark.parametrize("name", named("parallel"))
def test_parallel_programs_have_the_same_results_in_any_order(name):
    assert close(outcome(name, range), outcome(name, backwards))


def test_the_table_is_long_enough():
    assert len(programs()) >= 60
    assert {expected for expected, _ in programs().values()} == {"parallel", "race", "conditional", "unknown"}


# ---------------------------------------------------------------- random loops


def outermost(nest: RandomNest) -> str:
    return nest.source.replace("range(", "prange(", 1)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(random_nests())
def test_random_nests_agree_with_brute_force(capsys, nest):
    source = outermost(nest)
    (found,) = audited(capsys, f"import numba\nfrom numba import prange\n@numba.njit(parallel=True)\n{source}")
    arguments = nest.arguments()
    met = record(nest.function(), copy.deepcopy(arguments), 1).conflicts()
    if found["verdict"] == "parallel":
        assert not met, (source, found)
    if found["verdict"] == "race":
        assert met, (source, found)


LINES = (
    "t = x[i] * 2", "s += x[i]", "out[i] = t", "out[i] = s", "u = t", "s = max(s, x[i])", "s *= 1.5", "out[i] += u",
    "y[i] = x[i]", "x[i] = y[i] + t", "t = u + x[i]", "if x[i] > 0.5:\n    t = x[i]", "if x[i] > 0.5:\n    s += t",
    "if n > 3:\n    t = x[i]", "for j in range(2):\n    t = x[j]", "for j in range(i):\n    u = x[j]",
    "for j in range(2):\n    s += y[j]", "if x[i] > 0.5:\n    continue", "u = x[i]", "t += 1.0",
    "if x[i] > 0.5:\n    u = 1.0\nelse:\n    u = x[i]", "while t > 1.0:\n    t = t / 2", "x[i] = u if n > 2 else t",
)  # fmt: skip
RETURNED = ("", "return s", "return t", "return u", "if n > 2:\n    return t\nreturn s", "t = 0.0\nreturn t + s")


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(LINES), min_size=1, max_size=5), st.sampled_from(RETURNED))
def test_random_scalars_are_carried_by_no_parallel_loop(capsys, lines, returned):
    body = textwrap.indent("\n".join(lines), " " * 8)
    end = textwrap.indent(returned, " " * 4)
    source = f"def nest(x, y, out, n):\n    s = t = u = 0.0\n    for i in prange(n):\n{body}\n{end}\n"
    (found,) = audited(capsys, f"import numba\nfrom numba import prange\n@numba.njit(parallel=True)\n{source}")
    if found["verdict"] == "parallel":
        results = []
        for loop in (range, backwards):
            scope = {"prange": loop}
            exec(source, scope)  # the text is ours
            arguments = [np.linspace(0.1, 0.9, 6), np.linspace(0.7, 0.2, 6), np.zeros(6)]
            results.append([scope["nest"](*arguments, 6), *arguments])
        assert close(*results), (source, found)


# ---------------------------------------------------------------- the command


RACE = """from numba import njit, prange
@njit(parallel=True)
def f(a, x):
    for i in prange(len(x)):
        a[0] += x[i]
"""
GOOD = RACE.replace("a[0] += x[i]", "a[i] = x[i]")


def test_the_exit_status_is_1_where_there_is_a_race(capsys):
    Path("race.py").write_text(RACE)
    Path("good.py").write_text(GOOD)
    assert audit(capsys, "race.py")[0] == 1
    assert audit(capsys, "good.py")[0] == 0
    assert audit(capsys, ".")[0] == 1
    assert main(["audit", "not there"]) == 2


def test_the_text_of_a_race_says_which_iterations_meet_and_where(capsys):
    Path("race.py").write_text(RACE)
    _, text = audit(capsys, "race.py")
    words = " ".join(text.split())
    assert "race.py:4: race [AUD101]: f" in words
    assert "for i in prange(len(x)):" in words
    assert "iterations i = 0 and i = 1 both update `a[0]` (line 5)" in words
    assert "one update is lost" in words
    assert "1 loop over prange in 1 file: 0 parallel, 0 conditional, 1 race, 0 unknown." in words


def test_json_has_file_line_and_verdict_of_each_loop(capsys):
    (found,) = audited(capsys, RACE)
    assert (found["file"], found["line"], found["verdict"]) == ("t.py", 4, "race")
    assert found["race"]["element"] == "a[0]"
    assert [one["line"] for one in found["race"]["accesses"]] == [5, 5]


def test_sarif_has_a_result_for_each_loop_that_is_not_proved(capsys):
    Path("race.py").write_text(RACE)
    Path("good.py").write_text(GOOD)
    log = json.loads(audit(capsys, ".", "--sarif")[1])
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    (result,) = run["results"]
    assert result["level"] == "error"
    assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"] == "AUD101"
    assert result["locations"][0]["physicalLocation"]["region"]["startLine"] == 4


def test_nothing_of_the_audited_code_runs(capsys):
    text = f"raise SystemExit(3)\nopen('touched', 'w')\n{RACE}"
    audited(capsys, text.replace("def f(a, x)", "def f(a, x=open('touched', 'w'))"))
    assert not Path("touched").exists()


def test_files_that_cannot_be_parsed_are_listed_and_do_not_stop_the_rest(capsys):
    Path("broken.py").write_text("def f(:\n  prange(3)\n")
    Path("bytes.py").write_bytes(b"\xff\xfe\x00 prange")
    Path("cookie.py").write_bytes(b"# -*- coding: not-there -*-\nprange\n")
    Path("latin.py").write_bytes(b"# -*- coding: latin-1 -*-\n# caf\xe9\n" + RACE.encode())
    Path("nul.py").write_bytes(b"prange\x00")
    Path("deep.py").write_text(f"x = {'(' * 5000}1{')' * 5000}  # prange\n")
    status, text = audit(capsys, ".", "--json")
    data = json.loads(text)
    assert status == 1
    assert [Path(one["file"]).name for one in data["loops"]] == ["latin.py"]
    names = {Path(one["file"]).name for one in data["unreadable"]}
    assert names == {"broken.py", "bytes.py", "cookie.py", "nul.py", "deep.py"}


def test_a_pipe_is_not_waited_for(capsys):
    os.mkfifo("pipe.py")
    Path("race.py").write_text(RACE)
    data = json.loads(audit(capsys, ".", "--json")[1])
    assert [one["verdict"] for one in data["loops"]] == ["race"]
    assert [one["file"] for one in data["unreadable"]] == ["pipe.py"]
    assert main(["audit", ""]) == 2


def test_an_installed_package_is_found_by_its_name_without_import(capsys, monkeypatch):
    Path("lib/audited_package/sub").mkdir(parents=True)
    for name in ("", "sub/"):
        Path(f"lib/audited_package/{name}__init__.py").write_text("raise SystemExit(3)\n")
    Path("lib/audited_package/sub/loops.py").write_text(RACE)
    monkeypatch.syspath_prepend("lib")
    status, text = audit(capsys, "audited_package")
    assert status == 1
    assert "loops.py:4: race" in text
    assert audit(capsys, "audited_package.sub")[0] == 1
    assert "audited_package" not in sys.modules


NAMES = """import numba as nb, functools
from numba import njit as jit_it, prange as p
OPTIONS = {"parallel": True}
FLAG = False
fast = jit_it(parallel=True)
half = functools.partial(jit_it, parallel=FLAG)

@fast
def by_name(a):
    for i in p(len(a)): a[i] = 1.5 * a[i]

@jit_it(**OPTIONS)
def by_dictionary(a):
    for i in nb.prange(len(a)): a[i] = 1.5 * a[i]

@nb.jit(parallel=unknown)
def by_variable(a):
    for i in p(len(a)): a[i] = 1.5 * a[i]

@half()
def by_partial(a):
    for i in p(len(a)): a[i] = 1.5 * a[i]

def undecorated(a):
    for i in p(len(a)): a[i] = 1.5 * a[i]

def plain(a):
    for i in p(len(a)): a[i] = 1.5 * a[i]

compiled = nb.njit(parallel=True)(plain)

class Model:
    @nb.njit(parallel=True)
    def method(a):
        for i in p(len(a)): a[i] = 1.5 * a[i]

def factory(n):
    @nb.njit(parallel=True)
    def inner(a):
        for i in p(n): a[i] = 1.5 * a[i]
    return inner
"""


def test_decorators_under_other_names_and_with_options_from_variables(capsys):
    found = {one["function"]: (one["verdict"], one["parallel"]) for one in audited(capsys, NAMES)}
    assert {verdict for verdict, _ in found.values()} == {"parallel"}
    assert {name: parallel for name, (_, parallel) in found.items()} == {
        "by_name": True,
        "by_dictionary": True,
        "by_variable": None,
        "by_partial": False,
        "undecorated": None,
        "plain": True,
        "method": True,
        "factory.inner": True,
    }


def test_prange_of_cython_is_none_of_numba(capsys):
    assert not audited(
        capsys, f"from cython.parallel import prange\n{GOOD.replace('from numba import njit, prange', '')}"
    )


NESTED = """from numba import njit, prange
@njit(parallel=True)
def f(s, x):
    for i in prange(len(s)):
        for j in prange(len(x)):
            s[i] += x[j]
"""


def test_a_loop_inside_another_is_no_race_as_numba_runs_it_serially(capsys):
    outer, inner = audited(capsys, NESTED)
    assert (outer["verdict"], inner["verdict"], inner["code"]) == ("parallel", "conditional", "AUD114")
    assert inner["nested"]
    assert not outer["nested"]


UPDATES = ["s = s | (x[j] > 0.5)", "s |= x[j] > 0.5", "s &= x[j] < 0.5", "s = x[j] - s"]
"""Updates that Numba refuses in the outer loop over `prange`, and compiles in an inner one."""

INNER = """from numba import njit, prange
@njit(parallel=True)
def f(out, x, m):
    for i in prange(len(out)):
        s = False
        for j in prange(m):
            UPDATE
        out[i] = s
"""


@pytest.mark.parametrize("update", UPDATES)
def test_an_inner_loop_may_update_a_name_as_numba_refuses_elsewhere(update, capsys):
    _, inner = audited(capsys, INNER.replace("UPDATE", update))
    assert (inner["verdict"], inner["code"]) == ("conditional", "AUD114")
    (alone,) = audited(capsys, INNER.replace("UPDATE", update).replace("for i in prange", "for i in range"))
    assert (alone["verdict"], alone["code"]) == ("unknown", "AUD125")


def test_a_loop_that_one_thread_runs_is_no_race(capsys):
    (found,) = audited(capsys, RACE.replace("    for i", "    set_num_threads(1)\n    for i"))
    assert (found["verdict"], found["code"]) == ("conditional", "AUD115")


def test_helpers_are_read_in_other_files_of_the_package(capsys):
    Path("pack").mkdir()
    Path("pack/__init__.py").write_text("")
    Path("pack/helpers.py").write_text("def store(a, i, v):\n    a[i] = v\n\ndef bad(a, i, v):\n    a[0] = a[0] + v\n")
    Path("pack/loops.py").write_text(
        "from numba import njit, prange\nfrom .helpers import bad as worse, store\nfrom . import helpers\n"
        "@njit(parallel=True)\ndef f(a, x):\n    for i in prange(len(x)):\n        store(a, i, x[i])\n"
        "@njit(parallel=True)\ndef g(a, x):\n    for i in prange(len(x)):\n        worse(a, i, x[i])\n"
        "@njit(parallel=True)\ndef h(a, x):\n    for i in prange(len(x)):\n        helpers.store(a, i, x[i])\n"
    )
    data = json.loads(audit(capsys, "pack", "--json")[1])
    assert [one["verdict"] for one in data["loops"]] == ["parallel", "race", "parallel"]


def test_thousands_of_loops_are_audited_one_by_one(capsys, monkeypatch):
    from orion.cli.audit import command
    from orion.cli.audit.values import Finding, Verdict

    text = GOOD + "".join(
        f"\n@njit(parallel=True)\ndef f{k}(a):\n    for i in prange(9): a[i] = {k}\n" for k in range(3000)
    )
    monkeypatch.setattr(command, "judge", lambda *_: Finding(Verdict.PARALLEL))
    Path("many.py").write_text(text)
    status, printed = audit(capsys, "many.py")
    assert status == 0
    assert "3001 loops over prange in 1 file: 3001 parallel" in printed


def test_a_failing_analysis_is_an_unknown_verdict(capsys, monkeypatch):
    from orion.cli.audit import command

    def fail(*_):
        raise KeyError("x")

    monkeypatch.setattr(command, "judge", fail)
    (found,) = audited(capsys, RACE)
    assert (found["verdict"], found["code"]) == ("unknown", "AUD126")


def test_notebooks_are_read_by_cells(capsys):
    cell = {
        "cell_type": "code",
        "source": ["%matplotlib inline\n", *RACE.splitlines(keepends=True)],
        "execution_count": 4,
    }
    Path("n.ipynb").write_text(json.dumps({"cells": [cell], "nbformat": 4}))
    (found,) = json.loads(audit(capsys, "n.ipynb", "--json")[1])["loops"]
    assert (found["verdict"], found["line"]) == ("race", 5)


def test_all_codes_are_told_what_they_stand_for(verdicts):
    from orion.cli.audit.values import CODES
    from orion.reasons import CODES as REASONS

    used = defaultdict(list)
    for name, one in verdicts.items():
        used[one["code"]].append(name)
    assert used.keys() - {None} <= {*CODES, *REASONS}
