"""Random loops with buffers: integers are added, so that what comes out is the same in any order, and all of it must be
there; what iterations see of it only grows, and no update is seen too late.

`BufferedLoop(seed)` is a function, as text, and its arguments. `run` runs it by Python and by Orion, and compares.
"""

from __future__ import annotations

import random
from collections import Counter
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

import orion
from tests.loop_text import defined

SIZES = (3, 17, 700)
DTYPES = ("int64", "int32", "float64", "float32")
DELAYS = (1, 2, 5, 50, 1000)
ORDERS = ("magnitude", "round_robin", "random", "fifo")


class BufferedLoop:
    """A function whose text and arguments are those of a seed."""

    def __init__(self, seed: int) -> None:
        self.seed, self.chance = seed, random.Random(seed)
        chance = self.chance
        self.n, self.m = chance.choice((0, 1, 40, 300)), chance.choice((1, 3, 8))
        self.size, self.width = chance.choice(SIZES), chance.choice((3, 5))
        self.dtype = chance.choice(DTYPES)
        self.makes = orion.zeros if chance.random() < 0.3 else np.zeros
        self.max_delay = chance.choice(DELAYS)
        self.kind = chance.choice(("range", "range", "nest", "steps", "down", "elements"))
        self.is_deterministic = self.kind != "elements" and chance.random() < 0.25
        self.has_helper = chance.random() < 0.3
        self.options = {} if chance.random() < 0.7 else {"schedule": "dynamic"}
        self.rounds = chance.choice((1, 3))
        later = random.Random(-seed)
        self.reads_after = self.rounds > 1 and later.random() < 0.5
        self.turns = self.rounds > 1 and self.kind == "range" and later.random() < 0.6
        self.is_written = Counter[str]()
        self.text = self._function()
        self.send = chance.choice(
            (None, *(orion.pacing(order=order, batch=chance.choice((1, 300))) for order in ORDERS))
        )

    # ------------------------------------------------------------ its text

    def _function(self) -> str:
        heads = {
            "range": ["for i in range(n):"],
            "nest": ["for i in range(n):", "    for j in range(m):"],
            "steps": ["for i in range(1, n, 3):"],
            "down": ["for i in range(n - 1, -1, -1):"],
            "elements": ["for (i, j), x in data:"],
        }[self.kind]
        lines = ["def f(data, keys, edges, given, w, late, v, rows_late, seen, own, after, turned, n, m, rounds):"]
        depth = 1
        if self.rounds > 1:
            lines.append("    for r in range(rounds):")
            depth = 2
        lines += ["    " * depth + head for head in heads]
        depth += len(heads)
        body = [line for _ in range(self.chance.randint(1, 4)) for line in self._statement()]
        if self.turns:  # another part of an exact array in each round, of which blocks need parts of each other
            body.append("turned[r + 1, i] = turned[r, n - 1 - i] + 1")
        lines += ["    " * depth + line for line in body]
        if self.reads_after:
            lines.append("        after[r] = w[0] + v[0, 0]")
        return "\n".join(lines) + "\n"

    def _statement(self) -> list[str]:
        kind = self.chance.choice(("update", "update", "row", "inner", "if", "see", "own", "while"))
        if kind == "update":
            return [self._update()]
        if kind == "row":
            return [self._row()]
        if kind == "inner":
            return ["for p in range(edges[i], edges[i + 1]):", f"    late[keys[p]] += given[p] {self._sign()} i"]
        if kind == "if":
            test = self.chance.choice(("i % 3 == 0", "keys[i] > 1", "(i + m) % 2 == 1"))
            return [f"if {test}:", f"    {self._update()}", "else:", f"    {self._row()}"]
        if kind == "see":
            return [f"seen[i] = max(seen[i], w[{self._place()}])"]
        if kind == "while":
            return ["k = 0", "while k < i % 3:", f"    {self._update()}", "    k += 1"]
        return ["own[i] += i + 1"]

    def _sign(self) -> str:
        return self.chance.choice("+*")

    def _place(self) -> str:
        last = ["j % w.shape[0]"] if self.kind in ("nest", "elements") else []
        return self.chance.choice(("keys[i]", "i % w.shape[0]", "(i * 7 + 3) % w.shape[0]", "0", *last))

    def _update(self) -> str:
        value = self.chance.choice(("1", "i", "i % 5 + 1", "given[i]"))
        return f"late[{self._place()}] {self.chance.choice(('+=', '+=', '-='))} {value}"

    def _row(self) -> str:
        row = self.chance.choice(("keys[i]", "i % v.shape[0]"))
        return self.chance.choice((
            f"rows_late[{row}] += v_add[i % 4]", f"rows_late[{row}, 1] += i", f"rows_late[{row}, 1:3] += 2",
            f"rows_late[{row}] -= 3", f"rows_late[{row}, i % v.shape[1]] += keys[i]",
        )).replace("v_add", "given_rows")  # fmt: skip

    # ------------------------------------------------------------ its arguments

    def arguments(self, make_late: bool) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """The arguments, and the arrays among them that are compared."""
        rng = np.random.default_rng(self.seed)
        n = max(self.n, 1)
        count = int(rng.integers(0, 3 * n + 1))
        edges = np.sort(np.concatenate([[0], rng.integers(0, 2 * n + 1, n)]))
        data = orion.sparse((rng.integers(0, n, count), rng.integers(0, self.m, count)), np.ones(count), (n, self.m))
        w, v = self.makes(self.size, dtype=self.dtype), self.makes((self.size, self.width), dtype=self.dtype)
        calls, dtype = self.makes(self.size, dtype=self.dtype), np.dtype(self.dtype)
        options = {"max_delay": self.max_delay if make_late else 0, "deterministic": self.is_deterministic}
        options["send"] = self.send
        with_helper = (lambda value, update, calls: (value + update, calls + 1), self.max_delay, [calls])
        late = orion.buffer(w, *with_helper, deterministic=self.is_deterministic) if self.has_helper else (
            orion.buffer(w, **options)
        )  # fmt: skip
        given = {
            "data": data, "keys": rng.integers(0, self.size, 2 * n + 1), "edges": edges,
            "given": rng.integers(1, 9, 2 * n + 1).astype(dtype), "w": w, "late": late, "v": v,
            "rows_late": orion.buffer(v, max_delay=self.max_delay, deterministic=self.is_deterministic, send=self.send),
            "seen": np.zeros(n, dtype), "own": np.zeros(n, np.int64), "n": self.n,
            "after": np.zeros(3), "turned": np.zeros((4, n)), "m": self.m, "rounds": self.rounds,
        }  # fmt: skip
        return given, {name: given[name] for name in ("w", "v", "own", "after", "turned")}

    def run(self, workers: int, tally: Counter[str], session: AbstractContextManager[Any] | None = None) -> None:
        """Run it by Python and by Orion, in a session that is given or on threads; AssertionError where these
        differ."""
        rows = np.random.default_rng(1).integers(1, 5, (4, self.width)).astype(self.dtype)
        function = defined(self.text, given_rows=rows)
        given, expected = self.arguments(make_late=False)
        function(**given)
        parallel = orion.parallel_for(ordered=False if self.kind == "elements" else None, **self.options)(function)
        given, found = self.arguments(make_late=True)
        with session or orion.session("threads", workers, force_parallel=True):
            plan = parallel.plan(**given)
            plan.check()
            parallel(**given)
        told = f"seed {self.seed}, {workers} workers\n{self.text}\n{given}"
        for name, array in expected.items():
            np.testing.assert_array_equal(np.asarray(found[name]), np.asarray(array), f"{name}: {told}")
        run = parallel.last_run
        for one in run.late:
            assert one.latest <= one.max_delay, told
        tally["calls"] += 1
        tally["relaxed"] += any(loop.strategy == "relaxed" for loop in plan.loops)
        tally.update({str(one.how) for loop in plan.loops for one in loop.relaxed.arrays})
        tally["late"] += any(one.latest for one in run.late)
        tally["read after"] += self.reads_after
        tally["turned"] += self.turns
        tally["sent"] += bool(run.sent)
        tally["fetched"] += bool(run.fetched)
        tally["early"] += any(one.early for one in run.sent)
        tally["in order"] += self.is_deterministic
        tally[self.kind] += 1
