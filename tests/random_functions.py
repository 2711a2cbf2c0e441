"""Random functions against themselves: what a call gives, run by the Python interpreter, and the plans of many."""

from __future__ import annotations

import warnings
from contextlib import suppress

import numpy as np

import orion
from tests.oracles.interpreted import Order, kernel_code, run_interpreted
from tests.oracles.nest_check import is_in_vectors


def outcome(run, given):
    """What a call returns and leaves in its arrays, or that NumPy raises."""
    try:
        returned = run(given)
    except (ValueError, IndexError, orion.ArgumentError):
        return "an error"
    return [returned, *(value for value in given.values() if isinstance(value, np.ndarray))]


def interpreted(function, workers, force=True):
    def run(given):
        with orion.session(workers=workers, force_parallel=force), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            prepared = orion.parallel_for(function)._preparations.plain.prepare(given, workers, force)
            prepared.plan.check()
        if is_in_vectors(prepared):
            with orion.session(workers=workers, force_parallel=force), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return orion.parallel_for(function)(**given)
        codes = [kernel_code(loop.kernel.text) for loop in prepared.program.loops]
        own = prepared.local.take()
        return run_interpreted(prepared.program, codes, {**prepared.given(given), **own}, Order(workers))

    return run


def compare(function, given, workers, told):
    """Hold an interpreted run against the function itself; `given` makes the arguments, `told` is what to print."""
    want, got = outcome(lambda made: function(**made), given()), outcome(interpreted(function, workers), given())
    assert (want == "an error") == (got == "an error"), told
    if want != "an error":
        for mine, its in zip(got, want, strict=True):
            np.testing.assert_array_equal(mine, its, err_msg=told)


def plans(made):
    """The plans of functions, each with its arguments, on two workers; they are proved. What is refused has none."""
    for function, given in made:
        with orion.session(workers=2, force_parallel=True), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                plan = orion.parallel_for(function).plan(**given)
            except orion.OrionError:
                continue
            with suppress(orion.OutOfBoundsError):
                plan.check()
        yield plan


def rewritten(plan):
    """The names of the rewrites that a plan has taken."""
    return {name for name, _ in plan.function.rewrites}
