"""`python -m orion explain`: what it executes of a file, what it prints and writes, and its exit status."""

import json
import linecache
import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import orion
from orion.api import parallel_for
from orion.cli.cells import LoadError
from orion.cli.cli import main
from orion.cli.loading import load_functions
from orion.errors import UnsupportedLoopError
from orion.reasons import CODES
from tests.trials import one_in

SCRIPT = """
from __future__ import annotations

import math as m
import numpy as np
import orion as o
from orion import parallel_for as pf

try:
    import a_module_that_is_not_there as fast
except ImportError:
    fast = None

RATE = 0.5 * np.float32(0.1)
HALF, OTHER = 0.5, open("ran.txt", "w")
COUNT: int = 3
open("ran.txt", "w").write("top level ran")
table = np.loadtxt("missing.csv")

def note(function):
    open("ran.txt", "w").write("decorator ran")
    return function

@note
def half(x: "annotation", factor=0.5):
    return x * factor

@o.parallel_for
def sgd(ratings, W, H, step: float = 0.1, path=print("default ran")):
    for (i, j), r in ratings:
        err = r - W[i] @ H[j]
        wi = W[i].copy()
        W[i] += RATE * step * err * H[j]
        H[j] += RATE * step * err * wi

@pf(ordered=True)
def shift(W, n: int):
    for i in range(n - 1):
        W[i + 1] = half(W[i])

class Model:
    @pf
    def fit(self, a):
        pass

if __name__ == "__main__":
    open("ran.txt", "w").write("main ran")
raise SystemExit("the script ran to its end")
"""


@pytest.fixture
def script(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "train.py"
    path.write_text(SCRIPT)
    return path


def test_nothing_of_the_file_runs_but_its_definitions(script, capsys):
    loaded = load_functions(script, parallel_for)
    assert list(loaded.functions) == ["sgd", "shift"]
    assert not Path("ran.txt").exists()
    assert capsys.readouterr().out == ""
    assert [name for name, _ in loaded.hidden] == ["fit"]
    assert loaded.functions["shift"].options.ordered is True


def test_constants_and_helpers_are_those_of_the_file(script):
    namespace = load_functions(script, parallel_for).functions["sgd"].__wrapped__.__globals__
    assert float(namespace["RATE"]) == pytest.approx(0.05)
    assert namespace["COUNT"] == 3
    assert namespace["half"](4.0) == 2.0
    assert namespace["fast"] is None
    assert "table" not in namespace


def test_it_prints_the_plans_of_all_functions(script, capsys):
    assert main(["explain", "train.py", "--workers", "3"]) == 0
    shown = capsys.readouterr()
    assert "sgd(ratings, W, H, step, path=None): 1 loop, parallel" in shown.out
    assert "shift(W, n): 1 loop, serial" in shown.out
    assert "runs on     3 workers" in shown.out
    assert "passing over `fit`" in shown.err
    assert not Path("ran.txt").exists()


def test_one_function_with_its_sizes(script, capsys):
    sizes = ["--shape", "W=1000x16", "--shape", "H=500x16", "--shape", "ratings=1000x500"]
    assert main(["explain", "train.py:sgd", *sizes, "--elements", "ratings=70000", "--dtype", "W=float32"]) == 0
    out = capsys.readouterr().out
    assert "iterations  70,000, in 8 × 8 tiles of i × j" in out
    assert "shift" not in out


def test_json(script, capsys):
    assert main(["explain", "train.py:shift", "--json", "--integer", "n=100", "--shape", "W=100"]) == 0
    (plan,) = json.loads(capsys.readouterr().out)
    assert plan["function"] == "shift"
    assert plan["loops"][0]["iterations"] == 99
    assert plan["arguments"]["n"]["dtypes"] == ["int64"]


def test_pages_and_pictures_are_written(script, capsys):
    assert main(["explain", "train.py", "--html", "plans.html", "--svg", "loop.svg"]) == 0
    page = Path("plans.html").read_text()
    assert page.startswith("<!doctype html>")
    assert page.count('class="orion-plan"') == 2
    assert Path("loop.svg").read_text().startswith("<svg")
    assert "shift" in Path("loop-2.svg").read_text()


@pytest.mark.parametrize(("target", "status"), [("train.py", 1), ("train.py:sgd", 0), ("train.py:shift", 1)])
def test_check(script, target, status):
    assert main(["explain", target, "--check"]) == status


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.py"], "cannot read missing.py: No such file"),
        (["train.py:nothing"], "no decorated function `nothing`; it has sgd, shift"),
        (["train.py:"], ""),
        (["train.py", "--shape", "W:3x3"], "--shape W:3x3: write it as --shape NAME=VALUE, as in --shape A=1000x1000"),
        (["train.py", "--shape", "W=3xx"], "--shape W=3xx"),
        (["train.py", "--shape", "W=-3"], "--shape W=-3"),
        (["train.py", "--shape", "Q=3"], "`Q` is not a parameter of sgd, shift"),
        (["train.py", "--dtype", "H=float33"], "--dtype H=float33: write it as --dtype NAME=VALUE"),
        (["train.py", "--workers", "0"], "--workers 0: give 1 or more"),
        (["train.py", "--html", "no/such/folder.html"], "cannot write"),
        (["plain.py"], "plain.py has no function decorated with orion.parallel_for"),
        (["broken.py"], "broken.py:1: not a Python file"),
        (["imports.py"], "imports.py:1: ModuleNotFoundError"),
    ],
)  # fmt: skip
def test_wrong_usage(script, capsys, arguments, message):
    Path("plain.py").write_text("def f(a):\n    pass\n")
    Path("broken.py").write_text("def f(a:\n")
    Path("imports.py").write_text("import a_module_that_is_not_there\n")
    if arguments == ["train.py:"]:
        assert main(["explain", "train.py:"]) == 0  # no name: all functions
        return
    assert main(["explain", *arguments]) == 2
    shown = capsys.readouterr().err.strip().splitlines()[-1]
    assert shown.startswith("orion: ")
    assert message in shown


@pytest.mark.parametrize(
    ("output", "status", "told"),
    [(">&-", 0, ""), ("> /dev/full", 2, "orion: cannot write to the standard output: No space left on device\n")],
)
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_an_output_that_takes_nothing_is_no_fault_of_ours(script, output, status, told):
    command = f"{sys.executable} -m orion explain ORN102 {output}"
    done = subprocess.run(command, shell=True, stderr=subprocess.PIPE, text=True, timeout=100, check=False)
    assert (done.returncode, done.stderr) == (status, told)


@pytest.mark.parametrize(
    ("variable", "value", "allowed"),
    [
        ("ORION_WORKERS", "abc", "a whole number from 1 on, or unset it"),
        ("ORION_WORKERS", "0", "a whole number from 1 on, or unset it"),
        ("ORION_WORKERS", "9999999", "unset ORION_WORKERS for one worker per core"),
        ("ORION_BACKEND", "dask", "use one of 'threads', 'ray', 'serial'"),
        ("ORION_BACKEND", "theads", "did you mean `threads`?"),
        ("ORION_FORCE_PARALLEL", "maybe", "set it to 1 or 0, or unset it"),
    ],
)
def test_a_variable_that_cannot_be_is_told_in_one_line(script, capsys, monkeypatch, variable, value, allowed):
    orion.shutdown()  # the variables are read when a session begins
    monkeypatch.setenv(variable, value)
    assert main(["explain", "train.py:sgd"]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    last = shown.err.splitlines()[-1]
    assert last.startswith(f"orion: {variable}={value!r} is ")
    assert allowed in last
    assert main(["explain", "train.py:sgd", "--workers", "2"]) == 0  # which says what the variable would have


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (["--shape", "ratings=3x3x3"], "sgd: `ratings` has 2 keys, and --shape ratings gives 3"),
        (["--shape", "H=100"], "train.py:31: "),
    ],
)
def test_a_function_that_cannot_be_planned_does_not_hide_the_others(script, capsys, option, message):
    assert main(["explain", "train.py", *option]) == 1
    shown = capsys.readouterr()
    assert message in shown.err
    assert "shift(W, n): 1 loop, serial" in shown.out


def test_a_loop_that_cannot_be_compiled_is_refused_with_its_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = "import orion\n@orion.parallel_for\ndef f(a):\n    for i in range(3):\n        a[i] = lambda: i\n"
    Path("odd.py").write_text(text)
    assert main(["explain", "odd.py"]) == 1
    assert "odd.py:5" in capsys.readouterr().err


COPIED = """
import numpy as np
import orion
from orion import parallel_for

N = 1000
data = np.random.rand(N)
for z in range(3):
    pass

@parallel_for
def par(a, b):
    for i in range(a.shape[0]):
        a[i] = b[i]

@parallel_for
def stepped(a, k):
    for i in range(0, a.shape[0], k):
        a[i] = 1.0

@parallel_for
def uses(a):
    for i in range(N):
        a[i] = data[i]

def plain(a):
    for i in range(a.shape[0]):
        a[i] = 1.0

fast = parallel_for(plain)
ordered = orion.parallel_for(plain, ordered=True)
"""


@pytest.fixture
def copied(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("copied.py").write_text(COPIED)


def test_what_a_call_refuses_for_its_sizes_the_command_refuses(copied, capsys):
    assert main(["explain", "copied.py:par", "--check", "--shape", "a=10", "--shape", "b=5"]) == 1
    with pytest.raises(orion.OutOfBoundsError) as told:
        load_functions(Path("copied.py"), parallel_for).functions["par"].plan(np.zeros(10), np.zeros(5))
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err == f"par: {told.value}\n"
    assert main(["explain", "copied.py:par", "--check", "--shape", "a=10", "--shape", "b=10"]) == 0
    assert main(["explain", "copied.py:par", "--check", "--shape", "a=10"]) == 0
    assert main(["explain", "copied.py:stepped", "--integer", "k=0"]) == 1
    assert main(["stages", "copied.py:stepped", "--integer", "k=0"]) == 1
    assert capsys.readouterr().err.count("range() arg 3 must not be zero") == 2


def test_a_name_of_a_line_that_does_not_run_is_told_as_such(copied, capsys):
    assert main(["explain", "copied.py:uses"]) == 1
    shown = capsys.readouterr().err
    assert "copied.py:24: `data` is not known here" in shown
    assert "not copied.py:7, which gives `data`" in shown
    assert "call `uses.explain(…)` in the program, or make `data` an argument: `--shape data=1000`" in shown
    Path("copied.py").write_text(COPIED.replace("data[i]", "date[i]"))
    assert main(["explain", "copied.py:uses"]) == 1
    assert "`date` is not defined" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["fast", "ordered"])
def test_a_function_that_is_decorated_by_a_call(copied, capsys, name):
    assert main(["explain", f"copied.py:{name}"]) == 0
    assert "plain(a): 1 loop, parallel" in capsys.readouterr().out


GUESSED = """
import numpy as np, orion

def norm(v):
    s = 0.0
    for k in range(v.shape[0]):
        s += v[k] * v[k]
    return s

@orion.parallel_for
def of_rows(out, W):
    for i in range(W.shape[0]):
        out[i] = norm(W[i])

@orion.parallel_for
def turned(out, X):
    out[:] = X.T
    for i in range(X.shape[0]):
        out[i] = X[i].sum() + X[i, :3].max()

@orion.parallel_for
def counted(data, counts):
    for (i, j), r in data:
        counts[i, j] += np.lcm(r, j)

@orion.parallel_for
def whole(x, k):
    for i in range(x.shape[0]):
        x[i] = np.gcd(i, k)
"""


@pytest.mark.parametrize(
    ("function", "advice"),
    [
        ("of_rows", "--shape W=1000x1000"),
        ("turned", "--shape out=1000x1000"),
        ("counted", "--dtype data=int64"),
        ("whole", "--dtype k=int64"),
    ],
)
def test_what_is_advised_where_types_are_guessed_works_when_typed(tmp_path, monkeypatch, capsys, function, advice):
    monkeypatch.chdir(tmp_path)
    Path("guessed.py").write_text(GUESSED)
    assert main(["explain", f"guessed.py:{function}"]) == 1
    assert f"`{advice}`" in capsys.readouterr().err
    assert main(["explain", f"guessed.py:{function}", *advice.split()]) == 0


@pytest.mark.parametrize(
    ("option", "advice"),
    [
        (["--elements", "W=100"], "--shape W=1000x1000"),
        (["--integer", "ratings=100"], "--shape ratings=1000x1000"),
        (["--integer", "H=100"], "--shape H=1000x1000"),
        (["--elements", "step=3"], "--shape step=1000"),
    ],
)
def test_an_option_for_another_kind_of_argument_is_refused(script, capsys, option, advice):
    assert main(["explain", "train.py:sgd", *option]) == 1
    shown = capsys.readouterr().err
    assert shown.startswith(f"sgd: {option[0]} is for ")
    assert f"`{advice}`" in shown
    assert main(["explain", "train.py:sgd", *advice.split()]) == 0


@pytest.mark.parametrize("dtype", ["object", "complex256", "float16", "str", "M8[s]", "float33", ">f8", "f4,i4"])
def test_a_dtype_that_loops_do_not_work_on_is_refused_with_those_that_they_do(script, capsys, dtype):
    assert main(["explain", "train.py:sgd", "--dtype", f"W={dtype}"]) == 2
    shown = capsys.readouterr().err
    assert f"--dtype W={dtype}: write it as --dtype NAME=VALUE" in shown
    assert "uint8, uint16, uint32, uint64, float32, float64" in shown


def test_a_function_out_of_reach_is_told_of_where_it_may_be_meant(script, capsys):
    assert main(["explain", "train.py:sgd"]) == 0
    assert "passing over" not in capsys.readouterr().err
    assert main(["explain", "train.py:fit"]) == 2
    assert "passing over `fit`" in capsys.readouterr().err


def test_modules_beside_the_file_are_found_and_the_path_is_left_as_it_was(tmp_path, monkeypatch):
    package = tmp_path / "pack"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "sizes.py").write_text("RANK = 7\n")
    head = "import orion\nfrom .sizes import RANK\n"
    loop = "@orion.parallel_for\ndef f(a):\n    for i in range(RANK):\n        a[i] = 0.0\n"
    (package / "loops.py").write_text(head + loop)
    monkeypatch.chdir(tmp_path)
    before = list(sys.path)
    loaded = load_functions(package / "loops.py", parallel_for)
    assert loaded.functions["f"].__wrapped__.__globals__["RANK"] == 7
    assert sys.path == before


def test_an_error_in_a_constant_names_its_line(tmp_path):
    path = tmp_path / "zero.py"
    path.write_text("A = 1\nB = A / 0\n")
    with pytest.raises(LoadError, match=r"zero\.py:2: ZeroDivisionError"):
        load_functions(path, parallel_for)


NOTEBOOK = [
    ("markdown", "# not code", None),
    ("code", "%matplotlib inline\nimport numpy as np, orion\n!touch ran.txt\nRATE = 0.5", 4),
    ("code", "%%time\n@orion.parallel_for\ndef f(a):\n    for i in range(a.shape[0]):\n        a[i] *= RATE", None),
    ("code", "%%bash\ntouch ran.txt", None),
    ("code", "@orion.parallel_for\ndef g(a):\n    for i in range(a.shape[0]):\n        a[i] = lenn(a)", None),
    ("code", "@orion.parallel_for\ndef f(a, n):\n    if n:\n        !ls\n    for i in range(n):\n        a[i] = 1", 9),
]


@pytest.fixture
def notebook(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cells = [
        {"cell_type": kind, "source": text.splitlines(keepends=True), "execution_count": count, "metadata": {}}
        for kind, text, count in NOTEBOOK
    ]
    (tmp_path / "train.ipynb").write_text(json.dumps({"cells": cells, "nbformat": 4, "nbformat_minor": 5}))
    return tmp_path / "train.ipynb"


def test_a_notebook(notebook, capsys):
    assert main(["explain", "train.ipynb"]) == 1
    shown = capsys.readouterr()
    assert "f(a, n): 1 loop, parallel" in shown.out
    assert "train.ipynb, cell In[9], line 5" in shown.out
    assert "g: train.ipynb, cell 4, line 4: `lenn` is not defined" in shown.err
    assert "passing over" not in shown.err
    assert not Path("ran.txt").exists()
    assert main(["explain", "train.ipynb:f", "--check"]) == 0


def test_constants_of_a_notebook(notebook):
    assert load_functions(notebook, parallel_for).functions["f"].__wrapped__.__globals__["RATE"] == 0.5


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{}", "bad.ipynb: not a notebook"),
        ("no json", "bad.ipynb: not a notebook"),
        ('{"cells": [{"cell_type": "code", "source": "x = 1\\ndef f(:"}]}', "bad.ipynb, cell 1, line 2: not a Python"),
        ('{"cells": [{"cell_type": "code", "source": "x = 1 / 0"}]}', "bad.ipynb, cell 1, line 1: ZeroDivisionError"),
    ],
)
def test_a_notebook_that_is_none(tmp_path, monkeypatch, capsys, text, message):
    monkeypatch.chdir(tmp_path)
    Path("bad.ipynb").write_text(text)
    assert main(["explain", "bad.ipynb"]) == 2
    assert message in capsys.readouterr().err


def test_a_function_defined_twice_is_the_last_one_and_none_is_passed_over(tmp_path, capsys):
    loop = "@orion.parallel_for\ndef f({}):\n    for i in range(3):\n        a[i] = 0.0\n"
    path = tmp_path / "twice.py"
    path.write_text("import orion\n" + loop.format("a") + loop.format("a, b"))
    assert main(["explain", str(path)]) == 0
    shown = capsys.readouterr()
    assert "f(a, b): 1 loop" in shown.out
    assert shown.err == ""


@pytest.mark.parametrize("code", CODES)
def test_the_page_of_a_code(code, capsys):
    assert main(["explain", code.lower()]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"{code}: {CODES[code].title}\n\n")
    assert CODES[code].title[1:] not in shown.partition("\n")[2]  # told once
    assert len(shown.splitlines()) >= 4


def test_a_code_that_there_is_not(capsys):
    assert main(["explain", "ORN999"]) == 2
    assert "no reason has the code ORN999; there are ORN101, ORN102" in capsys.readouterr().err


def run(*command, **options):
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


COMMANDS = [["--help"], ["--version"], ["explain", "--help"], ["explain"], ["explain", "train.py"]]


@pytest.mark.parametrize("arguments", one_in(2, COMMANDS), ids=" ".join)
def test_the_command_and_the_module_are_the_same(script, arguments):
    command = [sys.executable, "-c", "import sys; from orion.cli.cli import main; sys.exit(main())"]
    one, other = run(*command, *arguments), run(sys.executable, "-m", "orion", *arguments)
    assert (one.returncode, one.stdout, one.stderr) == (other.returncode, other.stdout, other.stderr)
    assert "python -m" not in one.stderr + one.stdout.partition("\n")[0]


def test_the_version():
    assert run(sys.executable, "-m", "orion", "--version").stdout == f"orion {orion.__version__}\n"


def test_whoever_reads_may_have_enough(script):
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-m", "orion", "explain", "train.py:sgd"], stdout=write, stderr=subprocess.PIPE, check=False
    )
    os.close(write)
    assert b"Broken" not in done.stderr
    assert b"Traceback" not in done.stderr
    assert done.returncode == 141


@pytest.mark.parametrize("call", ["str(i)", "np.str(i)", "np.object(i)", "bytes(i)"])
def test_names_that_numpy_has_no_longer_are_refused_without_a_warning(call):
    text, name = f"@parallel_for\ndef loop(a):\n    for i in range(a.shape[0]):\n        a[i] = {call}\n", f"<{call}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    names = {"np": np, "parallel_for": parallel_for}
    exec(compile(text, name, "exec"), names)
    warnings.simplefilter("error")  # pytest puts the filters back after each test
    with pytest.raises(UnsupportedLoopError):
        names["loop"].plan(np.zeros(3))


def test_it_runs_as_a_module_without_numba_or_ray(script):
    code = (
        "import sys; from orion.cli.cli import main; status = main(['explain', 'train.py:sgd']);"
        "assert not {'numba', 'ray', 'rich'} & set(sys.modules); sys.exit(status)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    by_module = subprocess.run(
        [sys.executable, "-m", "orion", "explain", "train.py:sgd"], capture_output=True, text=True, check=False
    )
    assert by_module.stdout == done.stdout


ROUNDS = """
import numpy as np
from orion import parallel_for

@parallel_for
def settled(a, rounds=3):
    seen = np.full(a.shape[0], -1.0)
    for _ in range(rounds):
        changed = False
        for i in range(a.shape[0]):
            changed = changed or seen[i] != a[i]
            seen[i] = a[i]
        if not changed:
            break
    return seen
"""


def rounds_explained(tmp_path, capsys, *options):
    path = tmp_path / "settled.py"
    path.write_text(ROUNDS)
    status = main(["explain", str(path), "--workers", "2", "--check", *options])
    return status, capsys.readouterr().out


def test_numbers_that_are_not_given_are_the_defaults_as_in_a_call(tmp_path, capsys):
    status, out = rounds_explained(tmp_path, capsys, "--shape", "a=2000000")
    space = {}
    linecache.cache["<settled>"] = len(ROUNDS), None, ROUNDS.splitlines(keepends=True), "<settled>"
    exec(compile(ROUNDS, "<settled>", "exec"), space)
    with orion.session("threads", 2):
        plan = space["settled"].plan(np.ones(2_000_000))
    assert [line.split("  ")[0] for line in out.splitlines()[:1]] == [str(plan).splitlines()[0]]
    assert status == 0
    assert "inside its array" not in out


def test_what_is_taken_to_hold_without_sizes_is_said(tmp_path, capsys):
    status, out = rounds_explained(tmp_path, capsys)
    assert status == 0
    words = " ".join(out.split())
    assert "if `seen[i]` is inside its array: looked at in each call; for others another plan is made" in words
