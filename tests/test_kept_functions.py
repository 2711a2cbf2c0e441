"""Functions that Numba compiles as they are: their machine code is kept on disk, by all that it depends on."""

import builtins
import linecache
import math
import os
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from enum import IntEnum
from pathlib import Path
from textwrap import indent
from types import ModuleType, SimpleNamespace

import numba
import numpy as np
import pytest
from numba.core.bytecode import FunctionIdentity

import orion
from orion.kernel.build.function_key import function_key
from orion.kernel.build.machine_code import set_up_compiler
from orion.unanalysed import outside_of_whole

PROGRAM = """
import sys, traceback, warnings
import numpy as np, orion
import numba.core.compiler as compiler

compiled = []
plain = compiler.compile_extra


def counting(typing, target, function, *rest, **more):
    compiled.append(getattr(function, "__name__", ""))
    return plain(typing, target, function, *rest, **more)


compiler.compile_extra = counting
warnings.simplefilter("ignore")
SCALE = {scale}


def helper(x, k):
    return x[k] * {factor}


@orion.parallel_for
def gather(x, limit):
    found = {{}}
    k = 0
    while k < limit:
        found[k % 3] = helper(x, k) + SCALE
        k += 1
    return found


print(gather(np.arange(10.0), 7))
print("compiled", compiled.count("gather"))
try:
    gather(np.arange(10.0), 11)
except IndexError:
    print("lines", [one.lineno for one in traceback.extract_tb(sys.exc_info()[2])])
"""


def ran(folder, scale=1, factor=2.0, program=PROGRAM, **around):
    """The lines that a process prints, and its errors."""
    text = textwrap.dedent(program).format(scale=scale, factor=factor)
    file = folder / "gather.py"
    file.write_text(text)
    kept = {"ORION_CACHE": str(folder / "kept"), **around}
    done = subprocess.run([sys.executable, file], env=os.environ | kept, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines(), done.stderr


def expected(scale, factor):
    found = {}
    for k in range(7):
        found[k % 3] = float(k) * factor + scale
    return str(found)


def test_another_process_compiles_nothing(tmp_path):
    first, _ = ran(tmp_path)
    again, _ = ran(tmp_path)
    assert first[0] == again[0] == expected(1, 2.0)
    assert (first[1], again[1]) == ("compiled 1", "compiled 0")
    assert first[2] == again[2], "an error of kept code has the same lines"
    lines = PROGRAM.splitlines()
    where = [lines.index(one) + 1 for one in lines if "x[k] *" in one or "gather(np.arange(10.0), 11)" in one]
    assert all(str(line) in again[2] for line in where)


@pytest.mark.parametrize(("scale", "factor"), [(2, 2.0), (1, 3.0), (1.0, 2.0), (True, 2)])
def test_what_it_takes_from_outside_is_that_of_the_process(tmp_path, scale, factor):
    ran(tmp_path)
    for compiled in (1, 0):
        found, _ = ran(tmp_path, scale, factor)
        assert found[:2] == [expected(scale, factor), f"compiled {compiled}"]


@pytest.mark.parametrize("harm", [lambda data: data[:100], lambda data: data[:-8] + b"\0" * 8, lambda data: b""])
def test_a_damaged_file_is_compiled_anew(tmp_path, harm):
    ran(tmp_path)
    (code,) = (tmp_path / "kept" / "__pycache__").glob("orion_function_*.nbc")
    for path in (code, code.with_name(code.name.replace(".1.nbc", ".nbi"))):
        path.write_bytes(harm(path.read_bytes()))
        found, _ = ran(tmp_path)
        assert found[:2] == [expected(1, 2.0), "compiled 1"]
        assert ran(tmp_path)[0][1] == "compiled 0", "it is written again"


def test_a_full_or_unwritable_folder_costs_a_line_alone(tmp_path):
    (tmp_path / "kept").write_text("")
    found, told = ran(tmp_path)
    assert found[:2] == [expected(1, 2.0), "compiled 1"]
    assert told.count("not kept for later runs") == 1


def test_processes_that_compile_at_once(tmp_path):
    folders = [tmp_path / str(number) for number in range(3)]
    for folder in folders:
        folder.mkdir()
    with ThreadPoolExecutor(3) as threads:
        shared = str(tmp_path / "kept")
        found = [*threads.map(lambda folder: ran(folder, ORION_CACHE=shared)[0], folders)]
    assert [one[0] for one in found] == [expected(1, 2.0)] * 3
    assert ran(tmp_path)[0][1] == "compiled 0"


# ---------------------------------------------------------------- keys

NUMBER, OTHER, TABLE = 3, 3.0, SimpleNamespace(a=1)


def _plain(x, k=1):
    return x[0] + k


def _with_number(x):
    return x[0] + NUMBER


def _with_other(x):
    return x[0] + OTHER


def _with_numpy(x):
    return np.sqrt(x[0]) + np.sum(x) + len(x)


def _with_helper(x):
    return _plain(x, 2) + 1


def _with_object(x):
    return x[0] + TABLE.a


def key(function, *arguments):
    return function_key(outside_of_whole(function), arguments or (np.ones(3),))


def made(text, name="<text>", **outer):
    space = {"np": np, **outer}
    exec(compile(text, name, "exec"), space)
    return space["f"]


def test_keys_are_of_what_code_depends_on():
    assert key(_plain) == key(_plain)
    kept = [key(one) for one in (_plain, _with_number, _with_other, _with_numpy, _with_helper)]
    assert None not in kept
    assert len({*kept}) == len(kept)
    assert key(_plain, np.ones(3), 1) != key(_plain, np.ones(3), 1.0)
    assert key(_plain, np.ones(3)) != key(_plain, np.ones(3, np.float32)) != key(_plain, np.ones((3, 3)))
    assert key(_with_object) is None, "the text of an object does not say what it holds"


TEXT = "def f(x):\n    return x[0] + 1\n"


@pytest.mark.parametrize(
    ("text", "outer"),
    [
        ("def f(x):\n    return x[0] + 1.0\n", {}),
        ("def f(x):\n    return x[0] + True\n", {}),
        ("def f(x):\n    return x[1] + 1\n", {}),
        ("\ndef f(x):\n    return x[0] + 1\n", {}),
        ("def f(x, y=2):\n    return x[0] + 1\n", {}),
        ("def f(x):\n    return x[0] - 1\n", {}),
    ],
)
def test_other_code_has_another_key(text, outer):
    assert key(made(text, **outer)) != key(made(TEXT))


def test_names_of_files_and_what_is_not_used_change_nothing():
    assert key(made(TEXT, "/tmp/ipykernel_1/2.py")) == key(made(TEXT, "/tmp/ipykernel_3/4.py", unused=3))


@pytest.mark.parametrize("values", [(1, 2), (1, 1.0), (0.0, -0.0), (1, True), ((1, 2), (2, 1)), ("a", "b")])
def test_values_from_outside_are_told_apart(values):
    text = "def f(x):\n    return x[0] + C\n"
    found = [key(made(text, C=value)) for value in values]
    assert None not in found
    assert found[0] != found[1]


@pytest.mark.parametrize("value", [np.ones(2), [1], {1: 2}, object(), SimpleNamespace()])
def test_what_has_no_text_is_not_kept(value):
    assert key(made("def f(x):\n    return x[0] + C\n", C=value)) is None


def in_module(text, **outer):
    """A function in whose enclosing one a module stands, and the module."""
    module = ModuleType("settings")
    module.N, module.inner = 1, ModuleType("inner")
    module.inner.N = 1
    space = {"np": np, "settings": module, **outer}
    whole = f"def make(module):\n{indent(text, '    ')}\n    return f\nf = make(settings)"
    file = f"<kept {len(linecache.cache)}>"
    linecache.cache[file] = len(whole), None, whole.splitlines(keepends=True), file
    exec(compile(whole, file, "exec"), space)
    return space["f"], module


LOOP = "def f(a):\n    out = [0.0]\n    for x in a:\n        out.append(x * {})\n    return out[-1]"
LOOKING = {
    "a cell": LOOP.format("module.N"),
    "deep": LOOP.format("settings.inner.N"),
    "a text": LOOP.format('getattr(settings, "N")'),
    "of a helper": LOOP.format("of(settings)"),
    "Python's": LOOP.format("ORION_TEST_N"),
}


@pytest.mark.parametrize("where", LOOKING)
@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
def test_what_is_looked_up_is_that_of_each_call(where, monkeypatch):
    monkeypatch.setattr(builtins, "ORION_TEST_N", 1, raising=False)
    plain, module = in_module(LOOKING[where], of=made("def f(m):\n    return m.N"))
    function = orion.parallel_for(plain)
    for value in (1, 5, 2.5):
        module.N = module.inner.N = value
        monkeypatch.setattr(builtins, "ORION_TEST_N", value)
        if where == "a text":
            with pytest.raises(orion.UnsupportedLoopError, match="`getattr` of a module"):
                function(np.arange(5.0))
        else:
            assert function(np.arange(5.0)) == plain(np.arange(5.0)) == 4.0 * value


@pytest.mark.parametrize("where", LOOKING)
def test_modules_of_others_are_not_kept(where, monkeypatch):
    monkeypatch.setattr(builtins, "ORION_TEST_N", 1, raising=False)
    function, _ = in_module(LOOKING[where], of=made("def f(m):\n    return m.N"))
    before = key(function)
    monkeypatch.setattr(builtins, "ORION_TEST_N", 2)
    assert before is None or before != key(function)


class Named(IntEnum):
    N = 1

    def __repr__(self):
        return "N"


@pytest.mark.parametrize(
    "value", [Named.N, numba.njit(_plain), orion.parallel_for(_plain), math, sys, type("C", (), {})]
)
def test_values_whose_text_says_less_are_not_kept(value):
    found = key(made("def f(x):\n    return C(x[0])\n", C=value))
    assert (found is None) == (value is not math)


def test_functions_are_told_apart_by_which_they_are():
    def scaled(by):
        def scale(x):
            return x * by

        return scale

    text = "def f(x):\n    return g(x[0]) + h(x[0]) * k(x[0])\n"
    g, h = scaled(2), scaled(3)
    assert key(made(text, g=g, h=h, k=g)) != key(made(text, g=g, h=h, k=h))


# ---------------------------------------------------------------- names of code

NAMES = """
import os
from numba.core.bytecode import FunctionIdentity
from orion.kernel.build.machine_code import set_up_compiler
set_up_compiler()
print(FunctionIdentity.from_function(lambda: 1).unique_name)
if os.fork() == 0:
    print(FunctionIdentity.from_function(lambda: 1).unique_name, flush=True)
    os._exit(0)
os.wait()
print(FunctionIdentity.from_function(lambda: 1).unique_name)
"""


def test_no_two_processes_name_functions_alike():
    root = Path(__file__).resolve().parents[1]
    found = []
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", NAMES], cwd=root, capture_output=True, text=True, check=True)
        found += done.stdout.split()
    assert len({*found}) == 6


def test_the_compiler_is_set_up_once():
    set_up_compiler()
    before = FunctionIdentity._unique_ids
    set_up_compiler()
    assert FunctionIdentity._unique_ids is before
