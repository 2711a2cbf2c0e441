"""`orion explain --fix`: mends of serial loops, applied, planned, run and compared with what was there."""

import ast
import json
import os
import stat
import textwrap
import warnings
from pathlib import Path

import numpy as np
import pytest

import orion
from orion.api import parallel_for
from orion.cli.cli import main
from orion.cli.loading import load_functions
from orion.cli.mends import command
from orion.cli.mends.kinds import Site, first_that_leaves, other_name_than_the_bound
from orion.cli.mends.text import ChangedError, Edit, Source, applied, read_file
from orion.reasons import Hint, Reason

HEAD = "import numpy as np\nimport orion\n\n\n@orion.parallel_for\n"
N = 240

LAST = """
def f(W, b):
    for i in range(b.shape[0]):
        if b[i] > 0.5:
            W[0] = b[i]
"""
UP_TO = """
def f(a, b, n):
    for i in range(n):
        b[i] = 2.0 * a[i]
        n = 3
"""
UNTIL = """
def f(a, limit):
    for i in range(a.shape[0]):
        if a[i] > limit:  # too large
            break
        # the rest
        a[i] = 2.0 * a[i]
"""
UNTIL_OTHER = """
def f(a, b, limit):
    s = 0.0
    for i in range(2, a.shape[0]):
        x = b[i] * 2.0
        if x > 2.0 * limit:
            break
        a[i] = b[i]

        if b[i] > 3.0:
            s += b[i]  # a sum
    for i in range(3):
        a[i] += 1.0
    return s
"""
FIND = """
def f(a, b, x):
    for i in range(a.shape[0]):
        if b[i] == x:
            return i * 2  # found
        a[i] = 0.0
    return -1
"""
VARIABLE = """
def f(a, b):
    x = 0.0
    for i in range(a.shape[0]):
        x = a[i]
        b[i] = x * x
        i = i + 2
        x += i
    return x
"""
BOUND = """
def f(a, n):
    for i in range(n):
        a[i] *= 2.0
        n = 3
    return n
"""
COPY = """
def f(V, n):
    k = 0
    while k < n:
        for i in range(V.shape[0] - 1):
            V[i] = 0.5 * V[i + 1] + V[i]
        k += 1
"""


def vector(seed=0):
    return np.random.default_rng(seed).random(N)


def whole(seed=0):
    return np.floor(vector(seed) * 1000.0)


CASES = {
    "break": (UNTIL, lambda: (vector(), 0.99)),
    "break at once": (UNTIL, lambda: (vector(), -1.0)),
    "no break": (UNTIL, lambda: (vector(), 2.0)),
    "return": (FIND, lambda: (vector(), np.floor(vector(1) * 30), 7.0)),
    "no return": (FIND, lambda: (vector(), np.floor(vector(1) * 30), 77.0)),
    "break after others": (UNTIL_OTHER, lambda: (whole(), whole(1), 980.0)),
    "a copy": (COPY, lambda: (vector(), 3)),
    "the loop variable": (VARIABLE, lambda: (vector(), vector(1))),
    "the bound": (BOUND, lambda: (vector(), 100)),
    "the bound, no iteration": (BOUND, lambda: (vector(), 0)),
}
SIZES = {"a copy": ("--shape", "V=240")}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def written(text, name="train.py", head=HEAD):
    Path(name).write_bytes((head + text.lstrip("\n")).encode())
    return Path(name)


def functions(path):
    return load_functions(path, parallel_for).functions


def outcome(function, given):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        returned = function(*given)
    return [*(one for one in given if isinstance(one, np.ndarray)), returned]


@pytest.mark.parametrize("name", CASES)
def test_a_mend_is_written_parallel_and_gives_the_same(name, capsys):
    text, given = CASES[name]
    path = written(text)
    before = functions(path)["f"].serial
    sizes = SIZES.get(name, ())
    assert main(["explain", "train.py", "--fix", "--check", *sizes]) == 0
    out = capsys.readouterr().out
    assert "--- a/train.py\n+++ b/train.py\n" in out
    after = functions(path)["f"]
    wanted = outcome(before, given())
    for found in (outcome(after.serial, given()), outcome(after, given())):
        for mine, its in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(mine, its)
    with orion.session("threads", 2, force_parallel=True):
        plan = after.plan(*given())
        plan.check()
    assert plan.is_parallel
    assert main(["explain", "train.py", "--check", *sizes]) == 0


def test_the_difference_is_shown_and_nothing_written(capsys):
    path = written(UNTIL)
    before = path.read_bytes()
    assert main(["explain", "train.py", "--diff", "--check"]) == 1
    shown = capsys.readouterr()
    assert "+    first = a.shape[0]\n" in shown.out
    assert "line 7, `f`: the first iteration that leaves" in shown.err
    assert path.read_bytes() == before


def test_comments_stay():
    path = written(UNTIL)
    main(["explain", "train.py", "--fix"])
    text = path.read_text()
    assert text.count("# too large") == 1
    assert text.count("            # the rest\n") == 1
    written(FIND)
    main(["explain", "train.py", "--fix"])
    assert "        return i * 2  # found\n" in path.read_text()


NOT_MENDED = {
    "the test reads what the rest changes": """
def f(a, limit):
    for i in range(1, a.shape[0]):
        if a[i - 1] > limit:
            break
        a[i] = 2.0 * a[i]
""",
    "the test reads a sum of the rest": """
def f(a, limit):
    s = 0.0
    for i in range(a.shape[0]):
        if s > limit:
            break
        s += a[i]
    return s
""",
    "the loop variable is read afterwards": """
def f(a, b, limit):
    i = 0
    for i in range(a.shape[0]):
        if b[i] > limit:
            break
        a[i] = 2.0 * a[i]
    return i
""",
    "a view of what the test reads": """
def f(A, limit):
    for i in range(A.shape[0] - 1):
        if A[i, 0] > limit:
            break
        row = A[i + 1]
        row[0] = 2.0
""",
    "another formula is needed": """
def f(W):
    for i in range(W.shape[0] - 1):
        W[i + 1] = np.sin(W[i])
""",
    "an element that is read too": """
def f(W, b):
    for i in range(b.shape[0]):
        if b[i] > W[0]:
            W[0] = b[i] * 0.5
            W[1] = W[0] + 1.0
""",
    "an element that many may set": LAST,
    "an element read by another name": """
def f(W, a, b, k):
    v = W
    for i in range(a.shape[0]):
        W[k] = a[i]
        b[i] = v[k]
""",
    "a line left of the statement that it continues": """
def f(a, b, x):
    for i in range(a.shape[0]):
        if b[i] == x:
            return (i +
        10000 + i)
        a[i] = 0.0
    return -1
""",
    "a line of the rest left of its statement": """
def f(a, limit):
    for i in range(a.shape[0]):
        if a[i] > limit:
            break
        a[i] = (2.0 *
    a[i])
""",
    "the bound is set in an if": """
def f(a, n, c):
    if c > 0:
        for i in range(n):
            a[i] *= 2.0
            n = 3
    return n
""",
    "the bound is set in a while": """
def f(a, n, c):
    while c > 0:
        for i in range(n):
            a[i] *= 2.0
            n = 3
        c -= 1
    return n
""",
    "the bound may have no value before": """
def f(a, c):
    if c > 0:
        n = 5
    for i in range(n):
        a[i] *= 2.0
        n = 3
    return n
""",
}


@pytest.mark.parametrize("name", NOT_MENDED)
def test_what_is_not_sure_to_be_right_is_not_offered(name, capsys):
    path = written(NOT_MENDED[name])
    before = path.read_bytes()
    assert main(["explain", "train.py", "--fix"]) == 0
    shown = capsys.readouterr()
    assert "---" not in shown.out
    assert path.read_bytes() == before


ALIASES = {
    "a name": "v = a",
    "another name of it": "w = a\n    v = w",
    "one of two": "v, w = a, b",
    "a part": "v = a[:]",
    "a reversed part": "v = a[::-1]",
    "transposed": "v = a.T",
    "of another shape": "v = a.reshape(a.shape[0])",
    "a call": "v = np.asarray(a)",
    "two at once": "w = v = a",
    "a walrus": "(v := a)",
    "by annotation": "v: object = a",
    "one or the other": "v = a if t > 0 else b",
    "the other way": "v = a\n    a = v",
}


@pytest.mark.parametrize("name", ALIASES)
def test_another_name_of_what_the_loop_writes_is_not_mended(name, capsys):
    text = f"""
def f(a, b, t):
    {ALIASES[name]}
    for i in range(a.shape[0] - 1):
        if v[i] > t:
            return i
        a[i + 1] = 100.0
    return -1
"""
    path = written(text)
    before = path.read_bytes()
    main(["explain", "train.py", "--fix"])
    assert "---" not in capsys.readouterr().out
    assert path.read_bytes() == before
    assert first_that_leaves(site_of(text)) is None
    assert first_that_leaves(site_of(text.replace(ALIASES[name], "v = b + 1.0"))) is not None


def test_rows_bound_by_a_loop_are_not_mended():
    text = """
def f(A, t):
    for v in A:
        for i in range(A.shape[1] - 1):
            if v[i] > t:
                break
            A[0, i + 1] = 100.0
"""
    assert first_that_leaves(site_of(text)) is None


def test_arguments_are_arrays_of_their_own():
    text = "def f(a, b, t):\n    for i in range(9):\n        if b[i] > t:\n            break\n        a[i + 1] = 1.0\n"
    assert first_that_leaves(site_of(text)) is not None


LONG_TEXT = """
def f(a, b, x):
    for i in range(a.shape[0]):
        if b[i] == x:
            return '''a
            b'''
        a[i] = 0.0
    return ""
"""


@pytest.mark.parametrize("text", [NOT_MENDED["a line left of the statement that it continues"], LONG_TEXT])
def test_text_is_not_cut(text):
    assert first_that_leaves(site_of(text)) is None


@pytest.mark.parametrize("name", [one for one in NOT_MENDED if one.startswith("the bound")])
def test_a_bound_without_a_value_on_every_path(name):
    assert other_name_than_the_bound(site_of(NOT_MENDED[name], Hint.LAST.format(name="n"))) is None
    assert other_name_than_the_bound(site_of(BOUND, Hint.LAST.format(name="n"))) is not None


def site_of(text, hint=Hint.EXIT):
    """The innermost loop, as if its plan had this hint."""
    source = Source(text)
    (function,) = source.tree.body
    loop = [node for node in ast.walk(function) if isinstance(node, ast.For)][-1]
    return Site(source, function, loop, (Reason.of("ORN101", "", hint=hint),), False)


def test_a_function_that_stays_serial_is_left_as_it_is(capsys):
    text = UP_TO + "    for i in range(b.shape[0] - 1):\n        b[i + 1] = np.sin(b[i])\n"
    path = written(text)
    before = path.read_bytes()
    assert main(["explain", "train.py", "--fix", "--check"]) == 1
    assert "no mend is known that makes `f` parallel" in capsys.readouterr().err
    assert path.read_bytes() == before


def test_two_loops_of_one_function_and_two_functions_are_mended():
    second = UNTIL.replace("def f", "\n\n@orion.parallel_for\ndef g")
    twice = UP_TO.replace("b, n", "b, n, m") + "    for k in range(m):\n        a[k] *= 3.0\n        m = 2\n"
    path = written(twice + second)
    before = {name: one.serial for name, one in functions(path).items()}
    assert main(["explain", "train.py", "--fix", "--check"]) == 0
    after = functions(path)
    for name, given in (("f", (vector(), vector(1), 100, 50)), ("g", (vector(), 0.99))):
        for mine, its in zip(outcome(after[name], copies(given)), outcome(before[name], copies(given)), strict=True):
            np.testing.assert_array_equal(mine, its)


def copies(given):
    return tuple(one.copy() if isinstance(one, np.ndarray) else one for one in given)


def test_one_function_alone_is_mended():
    path = written(UP_TO + UNTIL.replace("def f", "\n\n@orion.parallel_for\ndef g"))
    main(["explain", "train.py:g", "--fix"])
    text = path.read_text()
    assert "        n = 3\n" in text
    assert "if i < first:" in text


def test_a_copy_that_costs_more_than_it_gains_is_not_offered(capsys):
    path = written("def f(W):\n    for i in range(W.shape[0] - 1):\n        W[i] = W[i + 1]\n")
    before = path.read_bytes()
    assert main(["explain", "train.py", "--fix", "--check", "--shape", "W=240"]) == 1
    assert "no mend is known" in capsys.readouterr().err
    assert path.read_bytes() == before


# ---------------------------------------------------------------- the file


def test_tabs_line_ends_and_a_mark_stay():
    text = (HEAD + UNTIL.lstrip("\n")).replace("    ", "\t").replace("\n", "\r\n")
    path = Path("train.py")
    path.write_bytes(b"\xef\xbb\xbf" + text.encode())
    main(["explain", "train.py", "--fix"])
    data = path.read_bytes()
    assert data.startswith(b"\xef\xbb\xbfimport")
    assert b"\tfirst = a.shape[0]\r\n" in data
    assert data.count(b"\n") == data.count(b"\r\n")
    assert b"    " not in data


def test_the_encoding_stays():
    path = Path("train.py")
    text = "# -*- coding: latin-1 -*-\n" + HEAD + UNTIL.lstrip("\n").replace("# the rest", "# größer")
    path.write_bytes(text.encode("latin-1"))
    main(["explain", "train.py", "--fix"])
    assert "# größer" in path.read_bytes().decode("latin-1")
    assert "first = " in path.read_bytes().decode("latin-1")


def test_wide_letters_before_a_change():
    path = written(BOUND.replace("n = 3", "größe = '日本'; n = 3"))
    before = path.read_text()
    main(["explain", "train.py", "--diff"])
    assert path.read_text() == before
    source = Source("é = a\n日 = [é, b]\n")
    (name,) = [node for node in source.tree.body[1].value.elts if node.id == "b"]
    assert source.of(name) == "b"


def test_a_file_without_a_last_line_end(capsys):
    path = written(UP_TO.rstrip("\n"))
    assert main(["explain", "train.py", "--fix"]) == 0
    assert path.read_text().endswith("        n_new = 3")
    assert "\\ No newline at end of file" in capsys.readouterr().out


def test_permissions_and_links_stay(folder):
    path = written(UP_TO, "real.py")
    path.chmod(0o640)
    Path("train.py").symlink_to("real.py")
    main(["explain", "train.py", "--fix"])
    assert Path("train.py").is_symlink()
    assert "n_new" in path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert sorted(one.name for one in folder.iterdir() if one.is_file()) == ["real.py", "train.py"]


def test_a_file_that_changes_meanwhile_is_left_alone(monkeypatch, capsys):
    path = written(UP_TO)
    real = command.mended

    def meanwhile(*given):
        found = real(*given)
        path.write_text("somebody saved this\n")
        return found

    monkeypatch.setattr(command, "mended", meanwhile)
    assert main(["explain", "train.py", "--fix"]) == 2
    assert "has changed since it was read" in capsys.readouterr().err
    assert path.read_text() == "somebody saved this\n"
    assert os.listdir() == ["train.py"]


def test_a_write_that_fails_leaves_the_file(monkeypatch, capsys):
    path = written(UP_TO)
    before = path.read_bytes()

    def refuse(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", refuse)
    assert main(["explain", "train.py", "--fix"]) == 2
    assert "No space left on device" in capsys.readouterr().err
    assert path.read_bytes() == before
    assert os.listdir() == ["train.py"]


def test_modules_beside_the_file_are_found():
    Path("limits.py").write_text("LIMIT = 3\n")
    path = written(
        UP_TO.replace("n = 3", "n = LIMIT"), head=HEAD.replace("import orion", "import orion\nfrom limits import LIMIT")
    )
    main(["explain", "train.py", "--fix"])
    assert "n_new" in path.read_text()


def test_notebooks_are_not_changed(capsys):
    cell = {"cell_type": "code", "execution_count": 1, "source": (HEAD + UP_TO.lstrip("\n")).splitlines(keepends=True)}
    Path("book.ipynb").write_text(json.dumps({"cells": [cell], "nbformat": 4, "metadata": {}}))
    assert main(["explain", "book.ipynb", "--fix"]) == 2
    assert "a notebook is not changed" in capsys.readouterr().err


def test_edits_that_overlap_are_refused():
    with pytest.raises(ValueError, match="overlap"):
        applied("abc", [Edit(0, 2, ""), Edit(1, 3, "")])


def test_a_read_file_writes_only_over_itself():
    path = written(UP_TO)
    file = read_file(path)
    path.write_text("x")
    with pytest.raises(ChangedError):
        file.write("y")
    assert textwrap.dedent(path.read_text()) == "x"
