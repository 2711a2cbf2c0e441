"""What no message may show: names that Orion made, names of Numba's, files of the cache.

All texts of errors, warnings and plans are noted as they are made (`note_messages`), and looked at after each test
(`wrong_in`). A name in backquotes, or one that a message says the value of, is one of the user's where it stands in
the source of a function that Orion has read. Else it is one of Python's, NumPy's or Orion's, one that a text of Orion's
has as an example, or one that the message itself tells the user to give something (`x_array = np.array(x)`). All others
were made on the way to machine code.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import keyword
import math
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import orion
from orion import errors
from orion.ir.assumed import Property
from orion.planned import Plan
from orion.source import SourceText

WARNINGS = [one for one in vars(errors).values() if isinstance(one, type) and issubclass(one, UserWarning)]

IN_BACKQUOTES = re.compile(r"`([^`\n]*)`")
STRING = re.compile(r"""("[^"]*"|'[^']*')""")
WORD = re.compile(r"(?<![\w.])[^\W\d]\w*")
"""A name, not an attribute."""

OF_A_LOOP = re.compile(r"(?:reaches|such as|e\.g\.) ((?:\w+ ?= ?-?\d+(?:, | and )?)+)|the loop over \(([\w, ]+)\)")
"""Where a message names loop variables without backquotes."""

OF_A_PART = re.compile(r"_\d$")
"""How the variable of a loop over a part of an array ends, after the array's name (`docs/reference/glossary.md`)."""

OF_A_COORDINATE = re.compile(r"\b[^\W\d]\w*__(?:trip|\d+)\b")
"""A name as isl has it: the trips of a loop, an extent."""

RELATION = re.compile(r"(\[[^\]]*\] -> )?\{[^}]*\}")
"""A set or a map of isl's, as errors of proofs show it: whole."""

GIVEN = re.compile(r"^(?:for )?([\w, ()]+?) (?:=|in) ")
"""The targets of an assignment, or of a loop."""

SINGLE_ASSIGNMENT = re.compile(r"(?<=')[^\W\d]\w*\.\d+(?=')|\$\d\w*")
"""A name as Numba has it once each has one value: `k.2`, `$12load_attr.3`."""

OF_A_FILE = re.compile(r"(?m)^ +\| .*$")
"""A line of a file of data: those of sources have a number."""

GENERATED_FILE = "orion_kernel_"


class Messages:
    """The texts of errors and warnings that were made, and the words of the functions that were read."""

    def __init__(self) -> None:
        self.texts: list[str | BaseException] = []
        self.words: set[str] = set()

    def note(self, text: object) -> None:
        """Note a text, or an error, whose text may be put into other words yet."""
        if isinstance(text, str | BaseException):
            self.texts.append(text)

    def read(self, source: SourceText) -> None:
        self.words.update(WORD.findall(re.sub(r"\.", " ", "\n".join(source.lines))))

    @contextmanager
    def looked_at(self, of_test: frozenset[str]) -> Iterator[None]:
        """AssertionError where a text that is made meanwhile shows what it may not. `of_test` are the words of the file
        of a test: it names classes and values that stand in no function."""
        self.texts.clear()
        yield
        texts = [*dict.fromkeys(str(one) for one in self.texts)]
        self.texts.clear()
        wrong = [(what, text) for text in texts for what in wrong_in(text, self.words | of_test)]
        assert not wrong, "\n\n".join(f"a message shows {what}:\n{text}" for what, text in wrong)


def note_messages() -> Messages:
    """From now on, all that Orion's errors and warnings say in this process."""
    found = Messages()
    for kind in (errors.OrionError, *WARNINGS):
        kind.__init__ = _noting(kind.__init__, found.note)
    errors.OrionError.add_note = _noting(errors.OrionError.add_note, found.note)
    told, read = Plan.__str__, SourceText.__init__

    def noted_plan(self: Plan) -> str:
        text = told(self)
        found.note(" ".join(text.split()))
        return text

    def noted(self: SourceText, *given: Any, **named: Any) -> None:
        read(self, *given, **named)
        found.read(self)

    SourceText.__init__, Plan.__str__ = noted, noted_plan
    return found


def _noting(method: Callable[..., None], note: Callable[[object], None]) -> Callable[..., None]:
    def noting(self: Any, *given: Any) -> None:
        method(self, *given)
        if method.__name__ == "add_note":
            note(given[0])
        elif given and isinstance(given[0], str):
            note(self)

    return noting


def wrong_in(text: str, of_user: set[str]) -> Iterator[str]:
    """What a message shows that is not to be shown, where the user's words are these.

    >>> [*wrong_in("`k` is not `k_2`", {"k"})]
    ['a name that nobody has written, `k_2`']
    >>> [*wrong_in("conflict, such as A_0=1 and B_0=2", {"A"})]
    ['a name that nobody has written, `B_0`']
    >>> [*wrong_in("line 1: 'k.2' is not a number\\n    | k.2", set())]
    []
    """
    if GENERATED_FILE in text:
        yield "a file of the cache"
    data = re.split(r"[\s,:;]+", "\n".join(OF_A_FILE.findall(text)))
    for found in SINGLE_ASSIGNMENT.findall(text):
        if found not in data:
            yield f"a name of Numba's, `{found}`"
    for found in OF_A_COORDINATE.findall(RELATION.sub("", text)):
        yield f"a name of isl's, `{found}`"
    of_loops = {name for names in OF_A_LOOP.findall(text) for name in WORD.findall(" ".join(names))}
    of_loops -= {name for name in of_loops if OF_A_PART.sub("", name) in of_user}
    for name in sorted(of_loops - of_user - {"and"}):
        yield f"a name that nobody has written, `{name}`"
    said = IN_BACKQUOTES.findall(text)
    given = {word for targets in map(GIVEN.match, said) if targets for word in WORD.findall(targets[1])}
    for one in said:
        for name in WORD.findall(STRING.sub("", one)):
            if name not in of_user | given and name not in known_words():
                yield f"a name that nobody has written, `{name}`"


@cache
def words_in(path: Path) -> frozenset[str]:
    """The words of a file of tests."""
    return frozenset(re.findall(r"[^\W\d]\w*", path.read_text("utf-8")))


@cache
def known_words() -> frozenset[str]:
    """The words of Python, of NumPy and of Orion, with those that are examples in the texts of Orion."""
    public = [getattr(orion, name) for name in orion.__all__]
    modules = {"np", "orion", *sys.stdlib_module_names}
    found = {*keyword.kwlist, *modules, *dir(builtins), *dir(np), *dir(np.iinfo(int)), *dir(math)}
    found.update(orion.__all__, *(one.split() for one in Property))
    for path in Path(orion.__file__).parent.rglob("*.py"):
        for text in _literals(ast.parse(path.read_text("utf-8"))):
            found.update(word for said in IN_BACKQUOTES.findall(text) for word in WORD.findall(said))
    found.update(word for one in public if inspect.isfunction(one) for word in inspect.signature(one).parameters)
    return frozenset(found.union(*map(dir, public)))


def _literals(tree: ast.Module) -> Iterator[str]:
    """The texts in some code that are no docstrings, with nothing where something is put into them."""
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if id(node) in docstrings:
            continue
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.JoinedStr):
            yield "".join(one.value if isinstance(one, ast.Constant) else "0" for one in node.values)
