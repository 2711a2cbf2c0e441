"""Which of the programs with a known cure `orion explain --fix` mends in their files, and why it leaves the others.

`tests.cured_programs` has programs that are refused, `tests.test_inspect_hints` loops that are serial, and
`tests.test_mends` loops whose mends are written. A mend that is written is applied to a file, run, and compared with
what was there.
"""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import textwrap
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import orion
from orion.api import parallel_for
from orion.cli.cli import main
from orion.cli.loading import load_functions
from tests.alike import alike
from tests.cured_programs import CURED, Cured
from tests.test_cures import function_of, help_of, made, refusal, result_of
from tests.test_inspect_hints import CASES as HINTED
from tests.test_mends import CASES as MENDED
from tests.test_mends import SIZES, outcome
from tests.test_sarif import check_form

HEAD = "import numpy as np\nimport orion\n\n\n"

FORMULA = "it is another way to compute the result, which only its author can know"
ARGUMENTS = "callers have to give other arguments"
MEANING = "the loop means something else then, or its author has to say that it does not"
COSTS = "the mend costs more than it gains at these sizes"
NOT_WRITTEN = {
    "ORN101 another formula": FORMULA,
    "ORN101 a copy": COSTS,
    "ORN101 elements of its own": FORMULA,
    "ORN101 a scalar stored afterwards": MEANING,
    "ORN101 step": ARGUMENTS,
    "ORN102 a key": ARGUMENTS,
    "ORN102 groups": ARGUMENTS,
    "ORN102 old values": MEANING,
    "ORN103 a sum": FORMULA,
    "ORN103 a key": ARGUMENTS,
    "ORN103 two dimensions": ARGUMENTS,
    "ORN103 an integer argument": ARGUMENTS,
    "ORN104 from the loop variable": FORMULA,
    "ORN104 from arrays": FORMULA,
    "ORN104 a greatest value": FORMULA,
    "ORN104 a list with an item for each": MEANING,
    "ORN104 evaluated in turn": MEANING,
    "ORN105 one row": MEANING,
    "ORN107 all elements in one loop": ARGUMENTS,
    "ORN107 rows of one length": ARGUMENTS,
    "ORN107 step": ARGUMENTS,
    "ORN108 an argument": ARGUMENTS,
    "ORN108 a start": ARGUMENTS,
    "ORN108 a truth value": ARGUMENTS,
    "ORN111 step": ARGUMENTS,
    "ORN111 the loop variable": MEANING,
}
"""The serial loops with a cure that `--fix` does not write → why."""

WRITTEN = {str(one): one for one in HINTED if str(one) not in NOT_WRITTEN}
PROGRAMS = {
    **{name: (f"@orion.parallel_for\n{one.loop}\n", one.given, ()) for name, one in WRITTEN.items()},
    **{
        name: (f"@orion.parallel_for\n{text.strip()}\n", given, SIZES.get(name, ()))
        for name, (text, given) in MENDED.items()
    },
}
"""The programs with a mend that is written: text, arguments, options of the command."""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def written(text: str) -> Path:
    path = Path("train.py")
    path.write_text(HEAD + text)
    return path


def options_of(given: dict[str, object]) -> list[str]:
    """The options of the command that tell what arguments are, as far as they can."""
    found: list[str] = []
    for name, value in given.items():
        match value:
            case np.ndarray() if value.dtype.kind in "fiubc":
                shape = "x".join(map(str, value.shape))
                found += ["--shape", f"{name}={shape}", "--dtype", f"{name}={value.dtype}"]
            case bool():
                pass
            case int():
                found += ["--integer", f"{name}={value}"]
            case float():
                found += ["--dtype", f"{name}=float64"]
            case _:
                pass
    return found


# ---------------------------------------------------------------- programs that are refused


def text_of(one: Cured, given: dict[str, object]) -> str:
    if one.program.startswith(("def f(", "async def f(")):
        return f"@orion.parallel_for\n{one.program}\n"
    if one.program.startswith("f = "):
        return f"{one.program}\nf = orion.parallel_for(f)\n"
    body = textwrap.indent(one.program, "    ")
    return f"@orion.parallel_for\ndef f({', '.join(given)}):\n{body}\n"


MENDED_REFUSALS = """\
`import math` is left out
`del t` is left out
`a, b = c, d = x[i], y[i]` becomes `a, b = x[i], y[i]; c, d = x[i], y[i]`
`range(3)` is written in place of its name
`enumerate(x)` is written in place of its name
`zip(m, x)` is written in place of its name
`divmod(i, 2)` becomes `(i // 2, i % 2)`
`np.sqrt` is written in place of its name
`plus(**{'a': x[i], 'b': 1})` becomes `plus(a=x[i], b=1)`
`(x if i > 1 else y)[i]` becomes `x[i] if i > 1 else y[i]`
`(3.0, 4.0)[i % 2]` becomes `np.array((3.0, 4.0))[i % 2]`
`np.add(W[i], 1.0, out=W[i])` becomes `W[i] = np.add(W[i], 1.0)`
`for v in (): out[0] += 1.0` is left out
`np.sum((x[i], y[i]))` becomes `np.sum(np.array((x[i], y[i])))`
`max((x[i], y[i]))` becomes `max(x[i], y[i])`
`np.concatenate((x, m))` becomes `np.concatenate((x, m.astype(np.float64)))`
`np.diff(flags)` becomes `flags[1:] != flags[:-1]`
`W.reshape(-1)` becomes `W.reshape(W.size)`
`np.array(x)` becomes `x.copy()`
`np.linalg.det(np.eye(2, dtype=np.int64))` becomes `np.linalg.det(np.eye(2, dtype=np.int64).astype(np.float64))`
`x.astype(np.float32, copy=False)` becomes `x.astype(np.float32)`
`pow(W[i], 2)` becomes `W[i] ** 2`
`sum(W)` becomes `np.sum(W, axis=0)`
`np.linspace(0.0, 1.0, 4, endpoint=False)` becomes `np.arange(4) * ((1.0 - 0.0) / 4) + 0.0`
`math.log(x[i], 3.0)` becomes `math.log(x[i]) / math.log(3.0)`
`np.outer(a=x, b=y)` becomes `np.outer(x, y)`
`np.clip(W[i], None, 5.0)` becomes `np.minimum(W[i], 5.0)`
`np.mean(W[i], dtype=np.float64)` becomes `np.mean(W[i].astype(np.float64))`
`np.zeros(4, order='C')` becomes `np.zeros(4)`
`np.linspace(0.0, 1.0, 4, False)` becomes `np.arange(4) * ((1.0 - 0.0) / 4) + 0.0`
`np.concatenate((x, y), 0)` becomes `np.concatenate((x, y))`
`np.count_nonzero(W[i])` becomes `np.sum(W[i] != 0)`
`np.hanning(u[i])` becomes `np.hanning(int(u[i]))`
`np.complex128(x[i], y[i])` becomes `complex(x[i], y[i])`
`tqdm(range(n), 'rows', disable=True)` becomes `tqdm(range(n), desc='rows', disable=True)`
`tqdm(iterable=range(n), disable=True)` becomes `tqdm(range(n), disable=True)`
`np.add.reduce(W)` becomes `np.sum(W, axis=0)`
`np.maximum.reduce(W, 1)` becomes `np.max(W, 1)`
`np.multiply.reduce(x)` becomes `np.prod(x, axis=0)`
`np.cumsum(x, 0)` becomes `np.cumsum(x)`
`np.sum(W, 0, np.float64)` becomes `np.sum(W, 0, dtype=np.float64)`
`np.diff(x, 2)` becomes `np.diff(np.diff(x))`
`flags[i].real` becomes `flags[i]`
`np.add.reduce(x)` becomes `np.sum(x, axis=0)`
`np.multiply.reduce(W)` becomes `np.prod(W, axis=0)`
`np.minimum.reduce(x)` becomes `np.min(x, axis=0)`
`A @= A` becomes `A[:] = A @ A`
`np.zeros(shape=4)` becomes `np.zeros(4)`
`assert n > 2, n` becomes `assert n > 2, f"{n}"`
`return sum([v * 2 for v in x])` becomes `total = 0; for v in x:; total += v * 2; return total`
`t = sum(v * 2 for v in x)` becomes `total = 0; for v in x:; total += v * 2; t = total`
`out[i] = (t := x[i]) + t` becomes `t = x[i]; out[i] = t + t`
`W.shape[i % 2]` becomes `W.shape[0] if i % 2 == 0 else W.shape[1]`
`out[i] = 1.0 if negated(i) in (1, 2) else 0.0` becomes `value = negated(i); out[i] = 1.0 if value in (1, 2) else 0.0`
`max(i, 2, key=abs)` becomes `2 if abs(2) > abs(i) else i`
`for v in x > 2:` becomes `values = x > 2; for v in values:`
`np.arange(u[i])` becomes `np.arange(int(u[i])).astype(np.float64)`
`np.diff(W)` becomes `W[:, 1:] - W[:, :-1]`
`np.percentile(W[i], (10.0, 20.0))` becomes `np.array([np.percentile(W[i], 10.0), np.percentile(W[i], 20.0)])`
`np.all(W > 2.0, axis=1)` becomes `np.sum(~(W > 2.0), axis=1) == 0`
`np.var(W[i], ddof=1)` becomes `np.sum((W[i] - np.mean(W[i])) ** 2) / max(W[i].size - 1, 0)`
`np.sum(W[i], keepdims=True)` becomes `np.array([np.sum(W[i])])`
`np.max(W[i], initial=9.5)` becomes `np.max(np.concatenate((W[i], np.array([9.5]))))`
`pow(i, 2, 5)` becomes `(i % 5) ** 2 % 5`
`out[i] = sum(W[i], 2.0)` becomes `total = 2.0; for value in W[i]:; total += value; out[i] = total`
`W[m[m > 2], i % 4]` becomes `W[:, i % 4][m[m > 2]]`
`cube[i, idx[:2], 1:]` becomes `cube[i][idx[:2]][:, 1:]`
`out[i] = x[x > 2.0].sum() if i > 1 else 0.0` becomes `if i > 1:; out[i] = x[x > 2.0].sum(); else:; out[i] = 0.0`
`np.inner(A, A)` becomes `A @ A.T`
`np.trace(A, 1)` becomes `np.trace(A[:, 1:])`
`np.linalg.norm(W, axis=1)` becomes `np.sqrt(np.sum(W * W, axis=1))`
`W.any(1)` becomes `np.sum(W != 0, axis=1) > 0`
`out[i] = np.sum(np.array([x[i], y[i]])) if i > 1 else 0.0` becomes `if i > 1:; out[i] = np.sum(np.array([x[i], y[i]])); else:; out[i] = 0.0`
`np.dot(A, three, V[i])` becomes `V[i] = np.dot(A, three)`
`out[i] = np.median(W, 1)[i]` becomes `results = np.array([np.median(row) for row in W]); out[i] = results[i]`
`out[i] = np.percentile(W, 50.0, 1)[i]` becomes `results = np.array([np.percentile(row, 50.0) for row in W]); out[i] = results[i]`
`np.mean(single, 0, np.float64)` becomes `np.mean(single.astype(np.float64), 0)`
`np.std(x, axis=0)` becomes `np.std(x)`
`W[i].item(2)` becomes `float(W[i][2])`
`complex(z[i], z[0])` becomes `complex(z[i].real - z[0].imag, z[i].imag + z[0].real)`
`x[0:2]` becomes `x[0:2].copy()`
`def double(a): return a + a` is written before the function
`match i: case 1: out[i] = 1 case _: out[i] = 2` becomes `if i == 1:; out[i] = 1; else:; out[i] = 2`
`g = lambda a: a + 1` is left out
`t = 'a'` is left out
`t = x.tolist()` is left out
`for v in zip(m, x):` has `v_0, v_1` for `v`
`t = x + 1.0` has `t_2` for `t`
`t = None` is left out
`W[i][x[:4] > 2.0] = 0.0` becomes `mask = x[:4] > 2.0; for j in range(len(mask)):; if mask[j]:; W[i][j] = 0.0`
`W[i, idx[:2]] = 0.0` becomes `for j in idx[:2]:; W[i, j] = 0.0`
`p = two_of(x[i])` has `p_0, p_1` for `p`
`d = {}` is left out
`kind = list` is left out
""".splitlines()  # noqa: E501 (as they are printed)
"""What the notes say of the mends of refused programs: each of one program."""


def note_is_of(note: str, one: Cured) -> bool:
    """Whether a program has the code that a note says is mended."""
    before = re.escape(re.split("` (?:becomes `|is |has `)", note)[0].removeprefix("`"))
    code = rf"\w = {before}$" if note.endswith("its name") else rf"(?<![\w.]){before}"
    return re.search(code, one.program if "$" in code else " ".join(one.program.split()), re.MULTILINE) is not None


MENDED_PROGRAMS = [one for one in CURED if any(note_is_of(note, one) for note in MENDED_REFUSALS)]

IS_OTHER = "the cured program is meant to give something else"
IN_PYTHON = "Python does not run the program"
NOT_TOLD = "the error does not say what to write for what"
OTHER_FILE = "what is refused is a function of another file"
NO_FUNCTION = "the file has no `def` to mend"
COUNTS = {IS_OTHER: 23, IN_PYTHON: 50, ARGUMENTS: 33, NOT_TOLD: 71, OTHER_FILE: 5, NO_FUNCTION: 1}


def reason_of(one: Cured) -> str:
    """Why a mend of a program is not made."""
    if one.is_other:
        return IS_OTHER
    if one.program.startswith("f = "):
        return NO_FUNCTION
    try:
        result_of(*function_of(one.program))
    except Exception:
        return IN_PYTHON
    error = refusal(one)
    if re.search(r"\bpass |argument|before the call", help_of(error)):
        return ARGUMENTS
    return NOT_TOLD if str(error).startswith("<test") else OTHER_FILE


def notes_of(shown: str) -> list[str]:
    """What is said of mends of refused code."""
    return re.findall(r"^orion: train\.py: line \d+, `f`: (`.*)$", shown, re.MULTILINE)


def import_outside(folder: Path):
    """Make the names that programs take from outside importable in a folder."""
    (folder / "outside_names.py").write_text(
        "from tests.cured_programs import OUTSIDE\n\nglobals().update(OUTSIDE)\n__all__ = list(OUTSIDE)\n"
    )


@pytest.mark.parametrize("one", CURED, ids=lambda one: one.printed)
def test_a_refused_program_is_mended_or_not_changed(one, folder, capsys):
    """What an error says to write for what is written, applied and run; else the file is as it was, and that is told.
    Where types can only be guessed, the file has a plan, and the call alone is refused."""
    _, given = function_of(one.program)
    import_outside(folder)
    path = written("from outside_names import *\n\n\n" + text_of(one, given))
    before = path.read_bytes()
    status = main(["explain", "train.py", "--fix", "--sarif", "log.sarif", *options_of(given)])
    shown = capsys.readouterr()
    notes = notes_of(shown.err)
    assert (path.read_bytes() != before) == ("+++" in shown.out) == bool(notes)
    assert set(notes) <= {*MENDED_REFUSALS}
    assert bool(notes) == (one in MENDED_PROGRAMS)
    if status == 2:  # a lambda: there is no `def` to load
        assert one.program.startswith("f = ") or "has no function" in shown.err
        return
    results = check_form(json.loads(Path("log.sarif").read_text()))
    refused = [result for result in results if result["level"] == "error"]
    assert bool(refused) == (status == 1 or bool(notes))
    assert all(result["message"]["text"] in shown.err for result in refused)
    assert "no mend is known" in shown.err or not refused or notes
    if notes:
        assert (one.is_other, "fixes" in refused[0]) == (False, True)
        same_as_before(path, one, given)


def same_as_before(path: Path, one: Cured, given):
    """The mended function of a file gives what the program gave in Python, compiled and in Python."""
    mended = load_functions(path, parallel_for).functions["f"]
    mended.plan(**made(given))
    wanted = result_of(*function_of(one.program))
    for function in (mended, mended.serial):
        found = result_of(function, given)
        for name in wanted:
            if wanted[name] is None:
                assert found[name] is None
            else:
                alike(found[name], wanted[name], rtol=1e-12)


def test_why_the_others_are_not_mended():
    """How many of the refused programs are, and why the others are not."""
    why = Counter(reason_of(one) for one in CURED if one not in MENDED_PROGRAMS)
    print(f"\n{len(MENDED_PROGRAMS)} of {len(CURED)} are mended; {dict(why)}")
    assert len(MENDED_PROGRAMS) == len(MENDED_REFUSALS) == 94
    assert why == COUNTS


def test_how_many_programs_there_are():
    """What these tests go through: a program that is new is counted here."""
    assert (len(CURED), sum(not one.is_other for one in CURED)) == (277, 254)
    assert (len(HINTED), len(WRITTEN), len(PROGRAMS)) == (29, 3, 13)
    assert {str(one) for one in HINTED} >= NOT_WRITTEN.keys()


# ---------------------------------------------------------------- serial loops


def serial_text(one) -> str:
    given = ", ".join(f"{name}={value!r}" for name, value in one.options.items())
    return f"@orion.parallel_for({given})\n{one.loop}\n"


@pytest.mark.parametrize("one", [one for one in HINTED if str(one) in NOT_WRITTEN], ids=str)
def test_what_is_not_written_is_listed_with_its_reason(one, capsys):
    path = written(serial_text(one))
    before = path.read_bytes()
    names = list(inspect.signature(load_functions(path, parallel_for).functions["f"]).parameters)
    status = main(["explain", "train.py", "--fix", *options_of(dict(zip(names, one.given(), strict=True)))])
    shown = capsys.readouterr()
    assert status == 0
    assert path.read_bytes() == before
    assert "no mend is known that makes `f` parallel" in shown.err or "is serial" not in shown.out


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_mend_that_is_written_gives_the_same_and_a_better_plan(name, capsys):
    text, given, sizes = PROGRAMS[name]
    path = written(text)
    plain = load_functions(path, parallel_for).functions["f"]
    with orion.session("threads", 2):
        before = plain.plan(*given())
    assert main(["explain", "train.py", "--fix", *sizes]) == 0
    capsys.readouterr()
    mended = load_functions(path, parallel_for).functions["f"]
    wanted = outcome(plain.serial, given())
    for found in (outcome(mended.serial, given()), outcome(mended, given())):
        for mine, its in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(mine, its)
    with orion.session("threads", 2):
        after = mended.plan(*given())
    with orion.session("threads", 2, force_parallel=True):
        mended.plan(*given()).check()
        for mine, its in zip(outcome(mended, given()), wanted, strict=True):
            np.testing.assert_array_equal(mine, its)
    assert len(after.parallelism.serial) < len(before.parallelism.serial)
    assert after.is_parallel


@pytest.mark.parametrize("name", PROGRAMS)
def test_its_log_and_its_patch(name, capsysbinary):
    text, _, sizes = PROGRAMS[name]
    path = written(text)
    before = path.read_bytes()
    assert main(["explain", "train.py", "--diff", "--sarif", "before.sarif", *sizes]) == 0
    Path("printed.patch").write_bytes(capsysbinary.readouterr().out)
    assert path.read_bytes() == before
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        subprocess.run(["git", "apply", "printed.patch"], check=True, capture_output=True)
    applied = path.read_bytes()
    path.write_bytes(before)
    assert main(["explain", "train.py", "--fix", *sizes]) == 0
    assert path.read_bytes() == applied
    assert main(["explain", "train.py", "--sarif", "after.sarif", *sizes]) == 0
    logs = [check_form(json.loads(Path(f"{when}.sarif").read_text())) for when in ("before", "after")]
    serial = [sum(one["level"] == "warning" for one in results) for results in logs]
    assert serial[0] > serial[1] == 0
