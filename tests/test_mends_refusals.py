"""`orion explain --fix` on functions that are refused: what an error says to write is written."""

import json
from pathlib import Path

import pytest

from orion.cli.cli import main
from orion.cli.mends.refusals import edits_of
from orion.cli.mends.text import applied
from orion.source import Replacement, Span

HEAD = "import numpy as np\nimport orion\n\n\n@orion.parallel_for\n"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def fixed(body: str, *options: str, status: int = 0) -> str:
    """A function of these lines after `--fix`."""
    path = Path("train.py")
    path.write_text(f"{HEAD}def f(x, y, W, out, n):\n{body}")
    assert main(["explain", "train.py", "--fix", "--dtype", "y=bool", "--shape", "y=5", *options]) == status
    return path.read_text().removeprefix(f"{HEAD}def f(x, y, W, out, n):\n")


LOOP = "    for i in range(n):\n"
MENDED = {
    "an expression in parentheses where the code around needs them": (
        "        out[i] = 2.0 * np.sum(np.diff(y) == y[1:])\n",
        "        out[i] = 2.0 * np.sum((y[1:] != y[:-1]) == y[1:])\n",
    ),
    "several errors, one after the other": (
        "        out[i] = np.add.reduce(W[i]) + np.maximum.reduce(W[i])  # both\n",
        "        out[i] = np.sum(W[i], axis=0) + np.max(W[i], axis=0)  # both\n",
    ),
    "the same error twice": (
        "        out[i] = np.add.reduce(W[i]) + np.add.reduce(W[0])\n",
        "        out[i] = np.sum(W[i], axis=0) + np.sum(W[0], axis=0)\n",
    ),
    "letters of more than one byte": (
        "        größe = 'é' and 1.0\n        out[i] = größe\n", None,
    ),
    "an expression with a comment": (
        "        out[i] = np.add.reduce(\n            W[i]  # a row\n        )\n", None,
    ),
    "one error with a mend and one without": (
        "        out[i] = np.add.reduce(W[i])\n        print(i)\n", None,
    ),
    "a statement that is alone in its block": (
        "        t = x[i]\n        if t > 0.0:\n            del t\n        out[i] = 1.0\n",
        "        t = x[i]\n        if t > 0.0:\n            pass\n        out[i] = 1.0\n",
    ),
    "a statement beside another": ("        t = x[i]; del t\n        out[i] = 1.0\n", None),
    "the result where another array is given": (
        "        np.multiply(W[i], 2.0, out=W[i])\n", "        W[i] = np.multiply(W[i], 2.0)\n",
    ),
    "a result that is stored and used": ("        out[i] = np.sum(np.multiply(W[i], 2.0, out=W[i]))\n", None),
    "assignments of which one changes what the next reads": (
        "        a = b = 1.0\n        a, b = c, d = b, a\n        out[i] = a + c\n", None,
    ),
    "calls that would be made twice": ("        a, b = divmod(abs(i), 3)\n        out[i] = a + b\n", None),
    "what a file imports already": (
        "        import numpy as np\n        out[i] = np.sqrt(x[i])\n", "        out[i] = np.sqrt(x[i])\n",
    ),
    "what a file does not import": ("        import math\n        out[i] = math.sqrt(x[i])\n", None),
    "a limit of two": (
        "        W[i] = np.clip(W[i], 1.0, None)\n", "        W[i] = np.maximum(W[i], 1.0)\n",
    ),
    "a range that has a name": (
        "        three = range(3)\n        for j in three:\n            out[i] += x[j]\n        for j in three:\n"
        "            out[i] -= W[i, j]\n",
        "        for j in range(3):\n            out[i] += x[j]\n        for j in range(3):\n"
        "            out[i] -= W[i, j]\n",
    ),
    "a function that has a name": (
        "        g = np.sqrt\n        out[i] = g(x[i]) + g(2.0)\n", "        out[i] = np.sqrt(x[i]) + np.sqrt(2.0)\n",
    ),
    "items that two loops would share": (
        "        t = enumerate(x)\n        for j, v in t:\n            out[i] += v\n        for j, v in t:\n"
        "            out[i] += v\n", None,
    ),
    "items that are gone after one iteration": (
        "        t = enumerate(x)\n        for k in range(2):\n            for j, v in t:\n"
        "                out[i] += v\n", None,
    ),
    "a range of a name that changes": (
        "        m = 2\n        t = range(m)\n        m = 3\n        for j in t:\n            out[i] += x[j]\n", None,
    ),
    "one of two functions": (
        "        g = np.sqrt\n        if x[i] > 0.0:\n            g = np.exp\n        out[i] = g(x[i])\n", None,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MENDED)
def test_what_is_written(name, capsys):
    before, after = MENDED[name]
    assert fixed(LOOP + before, status=int(after is None)) == LOOP + (after or before)
    shown = capsys.readouterr()
    assert ("no mend is known that makes a plan of `f`" in shown.err) == (after is None)
    assert ("+++ b/train.py" in shown.out) == (after is not None)


def test_the_mend_of_a_serial_loop_follows(capsys):
    body = "        if x[i] > 1.0:\n            break\n        x[i] = x[i] + np.add.reduce(W[i])\n"
    found = fixed("    for i in range(x.shape[0]):\n" + body)
    assert "x[i] = x[i] + np.sum(W[i], axis=0)" in found
    assert "first = i" in found
    assert "becomes `np.sum(W[i], axis=0)`" in capsys.readouterr().err


def test_a_serial_function_is_written_where_it_was_refused(capsys):
    body = "        out[0] = 0.5 * out[0] * out[0] + np.add.reduce(W[i])\n"
    assert "np.sum(W[i], axis=0)" in fixed(LOOP + body, "--check", status=1)
    assert "no mend is known that makes `f` parallel" in capsys.readouterr().err


def test_the_log_has_what_is_written_as_the_fix():
    body = LOOP + "        out[i] = np.sum(np.diff(y) == y[1:])\n"
    after = fixed(body, "--sarif", "log.sarif")
    (result,) = (
        one for one in json.loads(Path("log.sarif").read_text())["runs"][0]["results"] if one["level"] == "error"
    )
    (change,) = result["fixes"][0]["artifactChanges"]
    (replacement,) = change["replacements"]
    region = replacement["deletedRegion"]
    lines = f"{HEAD}def f(x, y, W, out, n):\n{body}".splitlines()
    line = lines[region["startLine"] - 1]
    lines[region["startLine"] - 1] = (
        line[: region["startColumn"] - 1] + replacement["insertedContent"]["text"] + line[region["endColumn"] - 1 :]
    )
    assert "\n".join(lines).endswith(after.rstrip("\n"))


EDITS = {
    "a name that the code does not have": ("a = f(b)\n", (4, 8), "b + c", None),
    "no code": ("a = f(b)\n", (4, 8), "b +", None),
    "a part of an expression": ("a = b + c + d\n", (8, 13), "d", None),
    "a name": ("a = f(b)\n", (4, 8), "b", "a = b\n"),
    "letters of more than one byte": ("é = f(ü)\n", (4, 8), "np.sum(ü)", "é = np.sum(ü)\n"),
    "a sum in a product": ("a = f(b, c) * 2\n", (4, 11), "b + c", "a = (b + c) * 2\n"),
    "a sum in a call": ("a = g(f(b, c))\n", (6, 13), "b + c", "a = g(b + c)\n"),
}


@pytest.mark.parametrize("name", EDITS)
def test_edits(name):
    text, (start, end), new, after = EDITS[name]
    edits = edits_of(text, Replacement(Span("a.py", 1, start, 1, end), new))
    assert (None if edits is None else applied(text, edits)) == after
