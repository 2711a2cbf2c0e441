"""Code that changes after a call: the next call runs what Python would."""

import importlib.util
import os
import sys
import timeit

import numpy as np
import pytest

import orion
from orion.frontend.parse import parse_with_outside
from orion.frontend.same_source import is_source_of

pytestmark = pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")

TEXT = """\
import math
import numpy as np
import orion

RATE = 2.0

def helper(x, by=10.0, *, plus=0.5):
    return x * by + plus + RATE

def early(x):
    if x < 0:
        return -x
    return helper(x) + math.sqrt(4.0)

def made(factor):
    def scaled(x):
        return factor * x

    def change(to):
        nonlocal factor
        factor = to

    return scaled, change

scaled, change = made(3.0)

@orion.parallel_for
def loop(a, b):
    for i in range(a.shape[0]):
        b[i] = max(helper(a[i]), 1.0) + early(a[i]) + scaled(a[i])
"""


@pytest.fixture
def module(tmp_path):
    """A module of its own file, as one that a user edits and reloads."""
    return loaded(tmp_path / "edited.py", TEXT)


def loaded(path, text):
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    found = importlib.util.module_from_spec(spec)
    sys.modules.pop(path.stem, None)
    spec.loader.exec_module(found)
    return found


def run(loop):
    a, b = np.arange(5.0), np.zeros(5)
    expected = np.zeros(5)
    loop.serial(a, expected)
    loop(a, b)
    np.testing.assert_array_equal(b, expected)
    return b


def reload_like_autoreload(module, path, text):
    """IPython's autoreload: the functions that there are get the code and defaults of those of the new file."""
    new = loaded(path, text)
    for name, old in vars(module).items():
        fresh = getattr(new, name, None)
        old, fresh = getattr(old, "__wrapped__", old), getattr(fresh, "__wrapped__", fresh)
        if callable(old) and hasattr(old, "__code__") and old.__module__ == module.__name__:
            for part in ("__code__", "__defaults__", "__kwdefaults__"):
                setattr(old, part, getattr(fresh, part))


CHANGES = {
    "defaults": lambda m: setattr(m.helper, "__defaults__", (7.0,)),
    "keyword defaults": lambda m: setattr(m.helper, "__kwdefaults__", {"plus": 4.0}),
    "keyword defaults in place": lambda m: m.helper.__kwdefaults__.update(plus=4.0),
    "a cell": lambda m: m.change(5.0),
    "a global of a helper": lambda m: setattr(m, "RATE", 8.0),
    "a helper of a helper": lambda m: setattr(m, "helper", m.scaled),
    "a name of Python's": lambda m: setattr(m, "max", min),
    "a module": lambda m: setattr(m, "math", np),
    "a number of another type": lambda m: setattr(m, "RATE", 2),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_a_function_takes_from_outside_changes(module, change):
    before = run(module.loop)
    CHANGES[change](module)
    after = run(module.loop)
    assert change in ("a module", "a number of another type") or not np.array_equal(before, after)
    np.testing.assert_array_equal(run(module.loop), after)


EDITS = {
    "a helper": ("x * by + plus", "x - by - plus"),
    "a default": ("by=10.0", "by=11.0"),
    "a keyword default": ("plus=0.5", "plus=1.5"),
    "a helper that is compiled": ("return -x\n    return", "return -x\n    return 2 *"),
    "the function itself": (") + early(a[i])", ") - early(a[i])"),
    "a global": ("RATE = 2.0", "RATE = 3.0"),
}


@pytest.mark.parametrize("edit", EDITS)
def test_a_file_is_edited_and_reloaded_in_place(module, tmp_path, edit):
    before = run(module.loop)
    text = TEXT.replace(*EDITS[edit])
    assert text != TEXT
    reload_like_autoreload(module, tmp_path / "edited.py", text)
    if edit == "a global":
        module.RATE = 3.0
    assert not np.array_equal(run(module.loop), before)


def test_the_function_gets_other_parameters(module, tmp_path):
    run(module.loop)
    reload_like_autoreload(module, tmp_path / "edited.py", TEXT.replace("loop(a, b)", "loop(a, b, c=2.0)"))
    b = np.zeros(5)
    module.loop(np.arange(5.0), b)
    assert b.any()
    with pytest.raises(orion.ArgumentError, match="missing"):
        module.loop(np.arange(5.0))


def test_builtin_hidden_and_shown_again(module):
    first = run(module.loop)
    module.max = min
    assert not np.array_equal(run(module.loop), first)
    del module.max
    np.testing.assert_array_equal(run(module.loop), first)


def test_looking_takes_about_a_microsecond(module):
    """Thirteen names, cells and functions; ten times the time that it takes on a free core is let pass."""
    _, outside = parse_with_outside(module.loop.__wrapped__)
    assert outside.is_current()
    assert min(timeit.repeat(outside.is_current, number=1000, repeat=20)) / 1000 < 10e-6


@pytest.mark.parametrize("edit", ["another constant", "lines before", "nothing is left", "removed"])
def test_a_file_that_is_edited_after_the_import_is_not_what_runs(module, tmp_path, edit):
    """Somebody saves the file while the job still loads its data: Python runs what it has imported."""
    file = tmp_path / "edited.py"
    match edit:
        case "another constant":
            file.write_text(
                TEXT.replace("x * by + plus + RATE", "x * by - plus + RATE").replace("1.0) + early", "9e9)")
            )
        case "lines before":
            file.write_text("# one\n# two\n# three\n" + TEXT)
        case "nothing is left":
            file.write_text("")
        case "removed":
            file.unlink()
    a, mine, theirs = np.linspace(-3, 3, 20), np.zeros(20), np.zeros(20)
    module.loop(a, mine)
    module.loop.serial(a, theirs)
    np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("edit", ["a helper", "the function itself"])
def test_python_takes_the_code_of_the_text_before(module, tmp_path, monkeypatch, edit):
    """Saved twice within a second, and as long as before: Python takes `__pycache__` for what the file says."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    file = tmp_path / "twice.py"
    for text in (TEXT, TEXT.replace(*EDITS[edit])):
        file.write_text(text)
        os.utime(file, (2e9 + (text != TEXT) / 2, 2e9 + (text != TEXT) / 2))  # half a second later
        spec = importlib.util.spec_from_file_location("twice", file)
        found = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(found)
    a, b, expected = np.arange(5.0), np.zeros(5), np.zeros(5)
    found.loop.serial(a, b)
    module.loop.serial(a, expected)
    np.testing.assert_array_equal(b, expected)
    with pytest.raises(orion.UnsupportedLoopError, match="Python runs other code than its file says"):
        found.loop(a, b)
    np.testing.assert_array_equal(b, expected)


def test_text_and_code_are_compared_wholly():
    def compiled(text):
        found = {}
        exec(compile(text, "text.py", "exec"), found)
        return found["f"]

    same = (
        "import math\n\ndef f(x, y=2):\n    g = lambda z: z in {1, 2.5, 'a'}\n    return [g(k) + math.pi for k in x]\n"
    )
    assert is_source_of(same, compiled(same))
    for old, new in [
        ("2.5", "3.5"),
        ("z:", "z=0:"),
        ("math.pi", "math.e"),
        ("1,", "True,"),
        ("for k", "for j"),
        ("g =", "h = g ="),
    ]:
        assert not is_source_of(same.replace(old, new), compiled(same)), (old, new)
    asserted = "def f(x):\n    assert x\n    return x + 1\n"
    assert is_source_of(asserted, compiled(asserted))
    assert not is_source_of(asserted.replace("1", "2"), compiled(asserted))
    alone = compiled(same.removeprefix("import math\n\n"))
    assert is_source_of("\n\n" + same, compiled("\n\n" + same))
    assert not is_source_of("\n\n" + same, alone)
    for one, other in [("0.0", "-0.0"), ("1", "1.0"), ("1", "True"), ("(1, 2)", "(1, 2.0)"), ("self.__a", "self.__b")]:
        text = "class C:\n    def f(self):\n        return {}\nf = C.f\n"
        assert is_source_of(text.format(one), compiled(text.format(one)))
        assert not is_source_of(text.format(other), compiled(text.format(one))), (one, other)
