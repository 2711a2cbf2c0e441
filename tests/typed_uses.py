"""Uses of every public name, for type checkers: `mypy` (strict) and pyright read this file, nothing runs it.

`assert_type` states what a use gives. A line with `# type: ignore[…]` is a wrong use: both checkers are told to
complain about an ignore that hides no error, so each of these lines has to be one.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

import orion
from orion import ParallelFunction, Plan

Array = NDArray[np.float64]


# ---------------------------------------------------------------- loops keep their signatures


@orion.parallel_for
def total(a: Array, factor: float = 1.0) -> float:
    s = 0.0
    for i in range(a.shape[0]):
        s += factor * a[i]
    return s


@orion.parallel_for(ordered=True, relax=("a",), require_parallel=False, fastmath=False, schedule="dynamic")
def scale(a: Array, factor: float) -> None:
    for i in range(a.shape[0]):
        a[i] *= factor


class Model:
    @staticmethod
    @orion.parallel_for
    def step(w: Array, rate: float) -> None:
        for i in range(w.shape[0]):
            w[i] -= rate * w[i]


def calls(a: Array) -> None:
    assert_type(total(a), float)
    assert_type(total(a, factor=2.0), float)
    assert_type(total.serial(a, 2.0), float)
    assert_type(total.debug(a, workers=3), float)
    assert_type(total.explain(a), str)
    assert_type(total.kernel_source(a, 2.0), str)
    Model.step(a, 0.1)
    scale(a, 2)


def wrong_calls(a: Array) -> None:
    total()  # type: ignore[call-arg]
    total(a, factr=2.0)  # type: ignore[call-arg]
    total("a")  # type: ignore[arg-type]
    scale(a, "twice")  # type: ignore[arg-type]
    scale.plan(a)  # type: ignore[call-overload]
    scale.verify(a)  # type: ignore[call-arg]
    Model.step(a, rate=None)  # type: ignore[arg-type]
    text: str = total(a)  # type: ignore[assignment]
    orion.parallel_for(order=True)  # type: ignore[call-overload]
    orion.parallel_for(3)  # type: ignore[call-overload]
    assert text


def functions_as_values() -> tuple[object, ...]:
    as_function: Callable[[Array, float], float] = total
    as_parallel: ParallelFunction[[Array, float], None] = scale
    too_few: Callable[[Array], None] = scale  # type: ignore[assignment]
    other_result: ParallelFunction[[Array, float], str] = scale  # type: ignore[assignment]
    return as_function, as_parallel, too_few, other_result


# ---------------------------------------------------------------- plans, runs, verification


def plans(a: Array) -> None:
    plan = total.plan(a)
    assert_type(plan, Plan)
    assert_type(total.plan(a, inspect=True), Plan)
    assert_type(plan.is_parallel, bool)
    assert_type(plan.runs_on, int)
    assert_type(plan.strategy, str)
    assert_type(plan.conditions, tuple[str, ...])
    assert_type([(one.code, one.message) for one in plan.reasons], list[tuple[str, str]])
    assert_type([one.array for one in plan.dependences], list[str])
    assert_type(plan.text(), str)
    assert_type(plan.to_dict(), dict[str, Any])
    assert_type(plan.to_json(), str)
    assert_type(plan.to_mermaid(), str)
    assert_type(plan.serial_order(workers=4), NDArray[np.int64])
    assert_type(plan.estimate(workers=64, nodes=8).workers, int)
    plan.check()
    plan.check_bounds()
    plan.save_svg("plan.svg")
    plan.save_svg(Path("plan.svg"))


def wrong_plans(plan: Plan) -> None:
    plan.strategy = "1d"  # type: ignore[misc]
    plan.estimate("four")  # type: ignore[arg-type]
    plan.shedule(4)  # type: ignore[attr-defined]
    plan.save_svg()  # type: ignore[call-arg]


def runs(a: Array) -> None:
    run = total.last_run
    total.replay(run, a)  # type: ignore[arg-type]
    if run is not None:
        assert_type(total.replay(run, a), float)
        assert_type(run.workers, int)
        assert_type(run.seconds, float)
        assert_type(run.serial_order(), NDArray[np.int64])
    found = total.verify(a)
    assert_type(found, orion.Verification)
    assert_type(found.is_same, bool)
    with orion.profile() as profile:
        total(a)
    assert_type(profile, orion.Profile)
    assert_type(profile.bottleneck.sentence, str)
    assert_type(profile.to_dict(), dict[str, Any])
    profile.save_trace("trace.json")
    orion.report(Path("run.html"))


# ---------------------------------------------------------------- arrays


def dense_arrays() -> None:
    made = orion.array([1.0, 2.0])
    assert_type(made, orion.DenseArray)
    assert_type(orion.zeros((3, 4), dtype=np.float32), orion.DenseArray)
    assert_type(orion.ones(3), orion.DenseArray)
    assert_type(orion.full((3,), 0.5), orion.DenseArray)
    assert_type(orion.uniform((3, 4), -1.0, 1.0, seed=1), orion.DenseArray)
    assert_type(orion.normal((3, 4), seed=1), orion.DenseArray)
    assert_type(made.shape, tuple[int, ...])
    assert_type(made.map(np.sqrt), orion.DenseArray)
    as_base: orion.DistArray = made
    as_base.save("made.npz")
    assert_type(orion.load(Path("made.npz")), orion.DistArray)


def sparse_arrays(keys: NDArray[np.int64], values: Array, table: Any) -> None:
    assert_type(orion.freeze(keys), NDArray[np.int64])
    made = orion.sparse((keys, keys), values, shape=(3, 4))
    assert_type(made, orion.SparseArray)
    assert_type(made.nnz, int)
    assert_type(made.shuffle_keys((0,), seed=1), orion.SparseArray)
    assert_type(made.histogram(0, bins=3), NDArray[np.int64])
    assert_type(orion.from_scipy(table), orion.SparseArray)
    assert_type(orion.from_pandas(table, keys=("i", "j"), values="r"), orion.SparseArray)
    assert_type(orion.from_arrow(table, keys=("i", "j"), values="r"), orion.SparseArray)
    assert_type(orion.read_csv("r.csv", keys=(0, 1), values=2), orion.SparseArray)
    assert_type(orion.read_parquet(Path("r.parquet"), keys=("i", "j"), values="r"), orion.SparseArray)
    assert_type(orion.read_libsvm("r.svm"), tuple[orion.SparseArray, Array])
    assert_type(orion.text_file("r.txt", lambda line: ((int(line),), 1.0)), orion.SparseArray)


def wrong_arrays(keys: NDArray[np.int64], values: Array) -> None:
    orion.zeros("three")  # type: ignore[arg-type]
    orion.zeros((3, 4), dtyp=np.float32)  # type: ignore[call-arg]
    orion.sparse((keys,))  # type: ignore[call-arg]
    orion.read_csv(3)  # type: ignore[arg-type]
    orion.load(None)  # type: ignore[arg-type]
    orion.from_pandas(values)  # type: ignore[call-arg]
    orion.DistArray()  # type: ignore[abstract]


# ---------------------------------------------------------------- relaxed memory


def added(old: float, update: float, helper: float) -> float:
    return old + update / helper


def relaxed(w: Array) -> None:
    orion.buffer(w, apply=added, max_delay=100, helpers=(w,), send=orion.pacing(order="magnitude"))
    orion.replicate(w, policy=orion.elastic(mode="async", alpha=0.1, sync_every=5)).reset()
    orion.replicate(orion.array(w), policy=orion.local_sgd(sync_every=8, outer=(0.7, 0.9)))
    orion.accumulator(0.0, combine=max)
    assert_type(orion.random(7, 1, 2), float)
    assert_type(orion.random.normal(7, 1), float)
    assert_type(orion.random.integers(0, 10, 7, 1), int)


def wrong_relaxed(w: Array) -> None:
    orion.buffer(w, max_dely=100)  # type: ignore[call-arg]
    orion.replicate(w)  # type: ignore[call-arg]
    orion.replicate(w, policy="elastic")  # type: ignore[arg-type]
    orion.elastic(sync_every="often")  # type: ignore[arg-type]


# ---------------------------------------------------------------- where loops run, what is kept, errors


def sessions(w: Array) -> None:
    orion.init(backend="threads", workers=2, force_parallel=True)
    orion.scale(4)
    with orion.session(backend="ray", workers=2, address="auto") as here:
        assert_type(here.workers, int)
    assert_type(orion.checkpoint("run", W=w, epoch=3, every=600.0), Path)
    assert_type(orion.restore(Path("run"), W=w), dict[str, Any])
    orion.shutdown()


def wrong_sessions() -> None:
    orion.init(worker=2)  # type: ignore[call-arg]
    orion.session(workers="two")  # type: ignore[arg-type]
    orion.scale()  # type: ignore[call-arg]
    orion.shutdown(True)  # type: ignore[call-arg]
    orion.checkpoint()  # type: ignore[call-arg]
    orion.parallel_fro  # type: ignore[attr-defined]  # noqa: B018


ERRORS: tuple[type[orion.OrionError], ...] = (
    orion.AliasError,
    orion.ArgumentError,
    orion.DataFormatError,
    orion.MissingExtraError,
    orion.MissingKeyError,
    orion.NotParallelError,
    orion.OutOfBoundsError,
    orion.PlanError,
    orion.StorageError,
    orion.UnsupportedLoopError,
    orion.UpdateError,
    orion.WorkerLostError,
)
WARNINGS: tuple[type[Warning], ...] = (
    orion.CheckpointWarning,
    orion.SerialLoopWarning,
    orion.StandstillWarning,
    orion.UnprovedWarning,
    orion.WorkerReplacedWarning,
)


def python_errors() -> tuple[type[BaseException], ...]:
    index_error: type[IndexError] = orion.OutOfBoundsError
    value_error: type[ValueError] = orion.DataFormatError
    import_error: type[ImportError] = orion.MissingExtraError
    key_error: type[KeyError] = orion.MissingKeyError
    warning: type[Warning] = orion.PlanError  # type: ignore[assignment]
    return index_error, value_error, import_error, key_error, warning
