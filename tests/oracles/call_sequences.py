"""Random functions of several loops, called one after the other on the same arrays of simulated nodes.

    python -m tests.oracles.call_sequences 0 1000       # so many sequences, from a seed on

After each call all arrays must be what Python makes of them, and the bytes that nodes sent each other those that the
plan predicts. What is between the loops of one function and between calls is what this is for: elements that go to
nodes for a later loop, what nodes keep, and what somebody else changes in between or meanwhile.
"""

from __future__ import annotations

import random
import sys
import warnings
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import numpy as np

import orion
from tests.loop_text import defined
from tests.oracles.interpreted import Order, kernel_code
from tests.oracles.nest_check import SMALL_SIZES, is_in_vectors, local_arrays_at, scheduled
from tests.oracles.nodes import Earlier, run_on_nodes

SHAPES = {"A": (13, 11), "B": (13, 11), "a": (40,), "b": (40,), "C": (7, 8, 6), "S": (30, 30)}
CHOSEN = (("A",), ("A", "B"), ("C",), ("C",), ("S",), ("a",), ("a", "b"), ("C", "A"), ("S", "a"), ("A", "B", "a"))
DTYPES = (np.int64, np.int32, np.float64, np.float32)
NODES = ("ab", "abc", "aab", "abb", "aabb", "abc", "abcd")
UNEVEN = "abb"
"""No plan is for: nodes that come first have one worker more."""

ROUNDS = ("m", "m", "m", "4", "2, m + 2", "m, 0, -1")
ROUNDS_OF_CALLS = (1, 3, 6, 9)
NEAR = (0, 0, 0, -1, 1, -1, 1)


@dataclass(frozen=True)
class Written:
    """A function by its text, and the arrays that it is given."""

    text: str
    arrays: tuple[str, ...]


class Writer:
    """Writes functions: stencils in rounds of t, next to loops whose subscripts are anything."""

    def __init__(self, choice: random.Random) -> None:
        self.choice = choice

    def function(self) -> Written:
        """A function of one to four nests."""
        arrays, lines = self.choice.choice(CHOSEN), []
        if self.choice.random() < 0.8:
            lines.append(f"    for t in range({self.choice.choice(ROUNDS)}):")
            for _ in range(self.choice.choice((1, 1, 2, 3))):
                lines += self._nest(arrays, 2, ["t"])
        if not lines or self.choice.random() < 0.35:
            for _ in range(self.choice.choice((1, 2))):
                lines += self._nest(arrays, 1, [])
        return Written(f"def f({', '.join(arrays)}, m):\n" + "\n".join(lines) + "\n", arrays)

    def _nest(self, arrays: Sequence[str], depth: int, outer: Sequence[str]) -> list[str]:
        target = self.choice.choice(arrays)
        shape, variables, lines = SHAPES[target], [], []
        for variable, extent in zip("ijk", shape, strict=False):
            lines.append("    " * (depth + len(variables)) + f"for {variable} in {self._range(extent, variables)}:")
            variables.append(variable)
        indent = "    " * (depth + len(variables))
        for _ in range(self.choice.choice((1, 1, 2))):
            terms = [
                self._access(self.choice.choice(arrays), variables, outer) for _ in range(self.choice.choice((1, 2, 3)))
            ]
            if self.choice.random() < 0.1:
                lines.append(f"{indent}if {terms[0]} % 2 == 0:")
                indent += "    "
            value = " + ".join(self.choice.choice(("", "2 * ", "3 * ")) + term for term in [*terms, *outer])
            lines.append(f"{indent}{self._access(target, variables, outer, is_plain=True)} = ({value}) % 97")
        return lines

    def _range(self, extent: int, outer: Sequence[str]) -> str:
        low, high = self.choice.choice((0, 1, 1, 2)), extent - self.choice.choice((0, 1, 1, 2))
        forms = [f"range({low}, {high})"] * 3 + [f"range({high - 1}, {low - 1}, -1)", f"range({low}, {high}, 2)"]
        if outer:
            other = self.choice.choice(outer)
            forms += [
                f"range({other}, {high})",
                f"range({low}, min({other} + 2, {high}))",
                f"range(max({low}, {other} - 2), min({other} + 3, {high}))",
                f"range({high} - 1, {other}, -1)",
            ]
        return self.choice.choice(forms)

    def _access(self, array: str, variables: Sequence[str], outer: Sequence[str], is_plain: bool = False) -> str:
        """An element next to that of the iteration; one time in eight subscripts are anything."""
        axes, is_any = len(SHAPES[array]), self.choice.random() < (0.05 if is_plain else 0.12)
        if len(variables) < axes or is_any:
            subscripts = [self._subscript(variables, outer, extent) for extent in SHAPES[array]]
        else:
            subscripts = [self._moved(one, 0 if is_plain else self.choice.choice(NEAR)) for one in variables[-axes:]]
        return f"{array}[{', '.join(subscripts)}]"

    def _subscript(self, variables: Sequence[str], outer: Sequence[str], extent: int) -> str:
        one, other = self.choice.choice(variables), self.choice.choice([*variables, *outer])
        forms = [one, f"{extent - 1} - {one}", f"{one} + {other}", f"{one} // 2", f"({one} + {other}) % {extent}"]
        forms += [f"min({one}, 3)", f"max({one}, {other})", other, str(self.choice.randrange(extent))]
        return self._moved(self.choice.choice(forms), self.choice.choice(NEAR[:5]))

    @staticmethod
    def _moved(text: str, by: int) -> str:
        return text if not by else f"{text} {'+' if by > 0 else '-'} {abs(by)}"


class Calls:
    """The calls of one seed: `arrays` are those on the nodes, `twin` is what Python makes of them."""

    def __init__(self, seed: int, tally: Counter[str]) -> None:
        self.seed, self.tally, self.choice = seed, tally, random.Random(seed)
        generator, dtype = np.random.default_rng(seed), self.choice.choice(DTYPES)
        self.arrays = {name: generator.integers(0, 97, shape).astype(dtype) for name, shape in SHAPES.items()}
        self.twin = {name: array.copy() for name, array in self.arrays.items()}
        self.nodes = self.choice.choice(NODES)
        self.driver = self.choice.choice((self.nodes[0], "driver"))
        self.earlier = Earlier()
        self.told = [f"seed {seed}: workers on {self.nodes}, arrays on {self.driver}, {np.dtype(dtype)}"]
        self.small = SMALL_SIZES.get((2, 2, 1, 0)[seed % 4], {})

    def run(self) -> None:
        """Call up to three functions in any order. AssertionError, with all calls, where something is wrong."""
        written = [self._written() for _ in range(self.choice.choice((1, 2, 3)))]
        functions = [(one, defined(one.text)) for one in written]
        decorated = [orion.parallel_for(function) for _, function in functions]
        for number in range(self.choice.choice((2, 4, 5))):
            at = self.choice.randrange(len(functions))
            self._call(number, *functions[at], decorated[at])
            self._change([*SHAPES])
        self.tally["sequences"] += 1

    def _written(self) -> Written:
        """A function that changes something and leaves no array."""
        while True:
            written = Writer(self.choice).function()
            function, changes = defined(written.text), False
            try:
                for rounds in ROUNDS_OF_CALLS:
                    trial = {name: self.twin[name].copy() for name in written.arrays}
                    function(**trial, m=rounds)
                    changes |= any((trial[name] != self.twin[name]).any() for name in trial)
            except IndexError:
                continue
            if changes:
                return written

    def _call(self, number: int, written: Written, function: Any, decorated: orion.api.ParallelFunction) -> None:
        given: dict[str, Any] = {name: self.arrays[name] for name in written.arrays}
        given["m"] = self.choice.choice(ROUNDS_OF_CALLS)
        with ExitStack() as patches, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for (module, name), value in self.small.items():
                patches.enter_context(patch.object(module, name, value))
            prepared = decorated._preparations.plain.prepare(given, len(self.nodes), True)
        if is_in_vectors(prepared):
            self.tally["in vectors"] += 1
            return
        order = Order(31 * self.seed + number)
        is_coarse = self.choice.random() < 0.5
        program = scheduled(prepared, len(self.nodes), coarse=order) if is_coarse else prepared.program
        nodes = self.nodes[: program.workers]
        self.told.append(
            f"call {number}: m = {given['m']}, {'larger tiles, ' if is_coarse else ''}{nodes}\n{written.text}"
        )
        codes = [kernel_code(loop.kernel.text) for loop in program.loops]
        arguments = {**prepared.given(given), **(local_arrays_at(prepared.local) if prepared.local else {})}
        untouched = [name for name in SHAPES if name not in prepared.program.written]
        function(**{name: self.twin[name] for name in written.arrays}, m=given["m"])
        _, exchange, sent = run_on_nodes(
            program, codes, arguments, order, nodes, self.driver, self.earlier, lambda: self._change(untouched)
        )
        self.tally["calls"] += 1
        self.tally["on several nodes"] += any(not loop.is_at_home for loop in exchange.loops)
        for name in SHAPES:
            np.testing.assert_array_equal(self.arrays[name], self.twin[name], err_msg="\n".join([*self.told, name]))
        if not is_coarse and nodes == self.nodes != UNEVEN:
            predicted = prepared.plan.estimate(nodes=len({*nodes})).bytes
            self.tally["bytes predicted"] += bool(predicted)
            assert predicted in (None, sent), "\n".join([*self.told, f"sent {sent} bytes, predicted {predicted}"])

    def _change(self, names: Sequence[str]) -> None:
        """Somebody writes to elements and rows of some arrays."""
        for name in names:
            if self.choice.random() < 0.3:
                at = tuple(self.choice.randrange(extent) for extent in SHAPES[name])
                at = at[:1] if self.choice.random() < 0.5 else at
                self.arrays[name][at] = self.twin[name][at] = self.choice.randrange(97)


def main() -> None:
    first, count = map(int, sys.argv[1:])
    tally: Counter[str] = Counter()
    for seed in range(first, first + count):
        Calls(seed, tally).run()
    print(dict(tally))


if __name__ == "__main__":
    main()
