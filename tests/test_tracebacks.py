"""Errors end in the user's line: in scripts and in notebooks, of Orion's making and of the loops' own."""

import os
import re
import subprocess
import sys

import nbformat
import numpy as np
import pytest
from nbclient import NotebookClient

import orion
from orion.errors import did_you_mean
from orion.tracebacks import is_whole

HEAD = """\
import numpy as np
import orion

@orion.parallel_for
def loops(a, index, k, n):
    m = 10 // n
    for i in range(a.shape[0]):
        a[index[i]] = m // (k - i)

@orion.parallel_for
def typo(a):
    for i in range(a.shap[0]):
        a[i] = 1.0

a, index = np.zeros(4, np.int64), np.arange(4)
"""

CASES = {
    "a name that is not known": ("typo(a)", "orion.errors.UnsupportedLoopError: {file}:12: the attribute `shap`"),
    "asked for by explain": ("loops.explain([1], index, 9, 1)", "orion.errors.ArgumentError: argument `a` is a list"),
    "an argument": ("loops([1], index, 9, 1)", "orion.errors.ArgumentError: argument `a` is a list"),
    "a missing argument": ("loops(a)", "orion.errors.ArgumentError: loops(): missing a required argument: 'index'"),
    "a subscript": ("loops(a, index + 2, 9, 1)", "orion.errors.OutOfBoundsError: {file}:8: subscript 4 leaves `a`"),
    "a division in a loop": ("loops(a, index, 2, 1)", "ZeroDivisionError: {file}:8: division by zero"),
    "a division between loops": ("loops(a, index, 9, 0)", "ZeroDivisionError: {file}:6: integer division or modulo"),
    "a plan": ("typo.plan(a)", "orion.errors.UnsupportedLoopError"),
    "a schedule": ("loops.plan(a, index, 9, 1).schedule(0)", "orion.errors.PlanError: a schedule needs at least one"),
    "an array": ("orion.zeros(3, dtype='flot')", "orion.errors.ArgumentError: 'flot' is not an element type"),
    "a session": ("orion.init(workers=0)", "orion.errors.ArgumentError: workers=0 is not a number of workers"),
    "a session in with": ("orion.session('thread')", "orion.errors.ArgumentError: backend='thread' is not"),
    "an option": ("orion.parallel_for(orderd=True)", "TypeError: parallel_for() got an unexpected keyword argument"),
    "no function": ("orion.parallel_for(3)", "orion.errors.ArgumentError: parallel_for decorates a plain function"),
    "a public name": ("orion.paralel_for", "AttributeError: module 'orion' has no attribute 'paralel_for': did you"),
}  # fmt: skip


def printed_by(tmp_path, line, **environment):
    """What a script that ends with this line prints as it fails."""
    (tmp_path / "script.py").write_text(f"{HEAD}{line}\n")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "script.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )
    assert done.returncode == 1
    return done.stderr.splitlines()


@pytest.mark.parametrize("case", CASES)
def test_an_error_ends_in_the_line_of_the_script(tmp_path, case):
    line, message = CASES[case]
    message = message.format(file=tmp_path / "script.py")
    lines = printed_by(tmp_path, line)
    frames = [text for text in lines if text.startswith("  File ")]
    assert len(frames) == 1
    assert frames[0].endswith(f'script.py", line {HEAD.count(chr(10)) + 1}, in <module>')
    assert lines[0] == "Traceback (most recent call last):"
    assert any(text.startswith(message) for text in lines)
    assert len(lines) <= 12


def test_the_switch_brings_the_rest_back(tmp_path):
    lines = printed_by(tmp_path, "typo(a)", ORION_FULL_TRACEBACK="1")
    assert sum(f"orion{os.sep}frontend{os.sep}" in text for text in lines) >= 3
    lines = printed_by(tmp_path, "loops(a, index, 9, 0)", ORION_FULL_TRACEBACK="1")
    assert "The above exception was the direct cause of the following exception:" in lines


@pytest.mark.parametrize("value", ["", "0", "off", "No", " false "])
def test_the_switch_is_off_where_it_says_so(monkeypatch, value):
    monkeypatch.setenv("ORION_FULL_TRACEBACK", value)
    assert not is_whole()


def test_what_caused_an_error_is_kept_for_debuggers():
    with pytest.raises(orion.ArgumentError) as caught:
        orion.zeros(3, dtype="flot")
    assert caught.value.__cause__ is None
    assert isinstance(caught.value.__context__, TypeError)


def test_a_fault_of_orion_keeps_its_traceback(monkeypatch):
    @orion.parallel_for
    def fill(a):
        for i in range(a.shape[0]):
            a[i] = 1.0

    def broken(*arguments):
        raise KeyError("a fault")

    monkeypatch.setattr(fill._preparations.plain, "prepare", broken)
    with pytest.raises(KeyError) as caught:
        fill(np.zeros(3))
    assert [entry.name for entry in caught.traceback][-2:] == ["__call__", "broken"]


def test_the_function_itself_has_no_entry_of_orion():
    @orion.parallel_for
    def divide(a, n):
        a[0] = 1 // n

    with pytest.raises(ZeroDivisionError) as caught:
        divide.serial(np.zeros(1), 0)
    assert [entry.name for entry in caught.traceback][1:] == ["divide"]


# ---------------------------------------------------------------- notebooks


CELLS = [
    "import numpy as np, orion\n@orion.parallel_for\ndef typo(a):\n    for i in range(a.shap[0]):\n        a[i] = 1.0",
    "typo(np.zeros(3))",
    "@orion.parallel_for\ndef again(a):\n    for i in range(a.shape[0]):\n        a[i] = lenn(a)\nagain(np.zeros(3))",
]


@pytest.fixture(scope="module")
def tracebacks():
    """What a notebook shows below the cells that fail."""
    cells = [nbformat.v4.new_code_cell(text) for text in CELLS]
    notebook = nbformat.v4.new_notebook(cells=cells)
    NotebookClient(notebook, timeout=120, kernel_name="python3", allow_errors=True).execute()
    found = ["\n".join(one.outputs[-1].traceback) if one.outputs else "" for one in notebook.cells]
    return [re.sub(r"\x1b\[[0-9;]*m", "", text) for text in found]


def test_a_notebook_shows_the_cell_and_nothing_of_orion(tracebacks):
    for text in tracebacks[1:]:
        assert f"{os.sep}orion{os.sep}" not in text
        assert "ipykernel_" not in text
        assert len(text.splitlines()) <= 20


def test_a_cell_is_called_by_what_stands_beside_it(tracebacks):
    assert "cell In[1], line 4: the attribute `shap` is not supported" in tracebacks[1]
    assert "did you mean `shape`?" in tracebacks[1]
    assert "this cell, line 4: `lenn` is not defined" in tracebacks[2]


# ---------------------------------------------------------------- did you mean


def helper(x, factor=2.0):
    return x * factor


@orion.parallel_for
def wrong_function(a):
    for i in range(a.shape[0]):
        a[i] = np.sqrrt(a[i])


@orion.parallel_for
def wrong_constant(a):
    for i in range(a.shape[0]):
        a[i] = np.eular_gamma


@orion.parallel_for
def wrong_name(values):
    for i in range(values.shape[0]):
        values[i] = valeus[i]  # noqa: F821


@orion.parallel_for
def wrong_method(a):
    for i in range(a.shape[0]):
        a[i] = a[i].cpoy()


@orion.parallel_for
def wrong_keyword(a):
    for i in range(a.shape[0]):
        a[i] = helper(a[i], facter=3.0)


@pytest.mark.parametrize(
    ("function", "meant"),
    [
        (wrong_function, "sqrt"), (wrong_constant, "euler_gamma"), (wrong_name, "values"), (wrong_method, "copy"),
        (wrong_keyword, "factor"),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)  # fmt: skip
def test_names_in_loops(function, meant):
    with pytest.raises(orion.UnsupportedLoopError, match=f"did you mean `{meant}`"):
        function.plan(np.zeros(3))


@pytest.mark.parametrize(
    ("call", "meant"),
    [
        (lambda: orion.init(bakend="threads"), "backend"),
        (lambda: orion.init(backend="thread"), "threads"),
        (lambda: orion.parallel_for(require_paralel=True), "require_parallel"),
        (lambda: orion.zeros(3, dtyp="f"), "dtype"),
        (lambda: wrong_name(vaules=3), "values"),
        (lambda: orion.read_cvs, "read_csv"),
    ],
)
def test_options_and_public_names(call, meant):
    with pytest.raises((TypeError, AttributeError)) as caught:
        call()
    assert f"`{meant}`" in str(caught.value) or f"'{meant}'" in str(caught.value)


def test_nothing_is_suggested_for_a_word_that_is_like_none():
    assert did_you_mean("zebra", ["shape", "size"]) == ""
