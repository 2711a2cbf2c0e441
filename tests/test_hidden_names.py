"""Variables, helpers and functions of the user's that are called like what generated text uses: `max`, `np`, `tile`."""

import linecache
import re
import warnings
from itertools import count

import numpy as np
import pytest

import orion
from orion.frontend.functions import canonical_name
from orion.ir.python_names import PythonNames
from orion.typing.functions import FUNCTIONS
from tests.hiding_programs import PROGRAMS
from tests.loop_text import from_body
from tests.oracles.other_names import COMMON, NAMES
from tests.trials import ALL

N = 9
_numbers = count()


def arguments(text):
    rng = np.random.default_rng(3)
    first = rng.random((N, N)) if "def f(A" in text else rng.random(N)
    return [first, rng.random(N), N, 1.0]


def outcome(function, text):
    """What a call returns and leaves in its arrays, or the error that it raises."""
    given = arguments(text)
    try:
        returned = function(*given)
    except orion.OrionError as error:
        return error
    except Exception as error:
        return type(error)
    values = returned if isinstance(returned, tuple) else (0 if returned is None else returned,)
    return [np.asarray(one).tolist() for one in (*values, *given)]


def named(program, name):
    """The function `f` of a program in which `V` has this name."""
    text = f"import math\nimport numpy as np\nimport orion\n{program.replace('V', name)}\n"
    file = f"<program with {name} {next(_numbers)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    scope = {}
    exec(compile(text, file, "exec"), scope)
    return scope["f"]


def check(program, name):
    function = named(program, name)
    theirs = outcome(function, program)
    with warnings.catch_warnings(), orion.session(workers=2, force_parallel=True):
        warnings.simplefilter("ignore")
        ours = outcome(orion.parallel_for(function), program)
    if isinstance(theirs, type):  # Python itself does not run it: `range` is an array
        assert not isinstance(ours, list), f"Python raises {theirs.__name__}, Orion gives {ours}"
        return
    if f"`{name}` is called, and is a local name" in str(ours):  # true, though Python may not come to the call
        return
    assert isinstance(ours, list), f"refused or crashed: {ours}"
    for mine, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-12)


def names_for(number):
    """The names that a program is tried with: all, or so many that each is tried in one of them."""
    if ALL:
        return NAMES
    return (*COMMON[number % 7 :: 7], *NAMES[number :: len(PROGRAMS)])


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_name_that_text_uses_is_like_any_other(program):
    for name in names_for([*PROGRAMS].index(program)):
        try:
            check(PROGRAMS[program], name)
        except BaseException as error:
            error.add_note(f"with the name `{name}`")
            raise


# ---------------------------------------------------------------- what text between loops may name

SPOKEN = [name for name in FUNCTIONS if re.fullmatch(r"\w[\w.]*", name)]
"""Functions that text calls by name, not methods, attributes and what is compiled otherwise."""


def test_text_between_loops_finds_every_function():
    space = PythonNames.of(from_body("for i in range(n):\n    a[i] = 0"), ()).space()
    assert [name for name in SPOKEN if canonical_name(eval(name, dict(space))) is None] == []
    assert {"orion.random", "np.linalg.norm", "math.hypot", "len"} <= {*SPOKEN}
