"""Calls with arguments like those of the call before: what has changed meanwhile is seen, and nothing is kept alive."""

import gc
from weakref import ref

import numpy as np
import pytest

import orion
from orion.ir.recent import recent
from orion.ir.signature import argument_types

FACTOR = 2.0


@orion.parallel_for
def scaled(a, b, n, factor):
    for i in range(n):
        a[i] = factor * b[i] + FACTOR


@orion.parallel_for
def segments(first, out):
    for i in range(first.shape[0] - 1):
        for j in range(first[i], first[i + 1]):
            out[j] += i


@orion.parallel_for
def columns(a):
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            a[i, j] = a[i, j] * 10 + i + j


def matches(function, *arguments):
    """Whether a call does what the undecorated function does."""
    expected = [np.copy(one) if isinstance(one, np.ndarray) else one for one in arguments]
    function.serial(*expected)
    function(*arguments)
    return all(np.array_equal(one, other) for one, other in zip(arguments, expected, strict=True) if np.ndim(one))


def test_scalars_that_change():
    a, b = np.zeros(8), np.arange(8.0)
    for n, factor in ((8, 2.0), (8, 3.0), (5, 3.0), (5, 3), (np.int64(6), np.float32(0.1)), (8, True)):
        assert matches(scaled, a, b, n, factor)
    with pytest.raises(orion.OutOfBoundsError):
        scaled(a, b, 9, 2.0)
    with pytest.raises(orion.ArgumentError):
        scaled(a, b, 2**70, 2.0)
    with pytest.raises(orion.ArgumentError):
        scaled(a, b, 8, 2**70)


def test_a_global_that_changes(monkeypatch):
    a, b = np.zeros(8), np.arange(8.0)
    assert matches(scaled, a, b, 8, 2.0)
    monkeypatch.setitem(globals(), "FACTOR", 7.0)
    assert matches(scaled, a, b, 8, 2.0)


def test_arrays_that_change_in_place():
    a = np.zeros((4, 6))
    assert matches(columns, a)
    a.shape = (6, 4)
    assert matches(columns, a)
    a.flags.writeable = False
    with pytest.raises(orion.OrionError):
        columns(a)
    a.flags.writeable = True
    assert matches(columns, a)
    a[:] = 0.0
    a.dtype = np.int64
    assert matches(columns, a)
    a.resize((3, 4), refcheck=False)
    assert matches(columns, a)


def test_arrays_that_overlap_after_others_that_do_not():
    base = np.arange(20.0)
    a, b = base[:8], base[10:18]
    assert matches(scaled, a, b, 8, 2.0)
    with pytest.raises(orion.AliasError):
        scaled(a, base[4:12], 8, 2.0)
    assert matches(scaled, a, b, 8, 2.0)
    with pytest.raises(orion.AliasError):
        scaled(a, a, 8, 2.0)


def test_another_session():
    a, b = np.zeros(1000), np.arange(1000.0)
    for workers in (1, 3, 2):
        with orion.session("threads", workers, force_parallel=True):
            assert matches(scaled, a, b, 1000, 2.0)
            assert matches(scaled, a, b, 1000, 3.0)


def test_no_array_is_kept():
    a, b = np.zeros(8), np.arange(8.0)
    scaled(a, b, 8, 2.0)
    scaled(a, b, 8, 2.0)
    found = ref(a)
    del a
    gc.collect()
    assert found() is None
    assert matches(scaled, np.zeros(8), b, 8, 2.0)


def test_arguments_can_be_resized_after_a_call():
    a, b = np.zeros(8), np.arange(8.0)
    scaled(a, b, 8, 2.0)
    plan = scaled.plan(a, b, 8, 2.0)
    with orion.session("threads", 2, force_parallel=True), orion.profile():
        scaled(a, b, 8, 2.0)
    run = scaled.last_run
    for array in (a, b):
        array.resize(40, refcheck=False)
    assert len(run.plan.loops) == len(plan.loops) == 1  # both are still there
    assert matches(scaled, a, b, 40, 2.0)


def test_an_array_whose_contents_were_looked_at_cannot_be_resized_but_made_anew():
    """`docs/reference/differences.md` says so: of others nothing is kept."""
    first, out = np.arange(9), np.zeros(40)
    assert matches(segments, first, out)
    with pytest.raises(ValueError, match="cannot resize an array that references or is referenced"):
        first.resize(12, refcheck=False)
    out.resize(50, refcheck=False)
    first = np.resize(first, 12)
    first[8:] = [8, 20, 40, 50]
    assert matches(segments, first, out)


def test_an_array_of_automatic_checkpoints_cannot_be_resized(tmp_path):
    a = np.zeros(8)
    with orion.session():
        orion.checkpoint(tmp_path, every=600, a=a)
        with pytest.raises(ValueError, match="cannot resize an array that references or is referenced"):
            a.resize(12, refcheck=False)


def test_only_plain_arrays_and_numbers_are_remembered():
    class Own(np.ndarray):
        pass

    assert recent({"a": np.zeros(3), "n": 3, "x": np.float32(1), "flag": True}, {"n"}) is not None
    for other in (np.zeros(3).view(Own), [1.0], orion.zeros(3)):
        assert recent({"a": other}, ()) is None


def test_overlaps_are_seen_by_addresses_where_arrays_are_views():
    base = np.arange(40.0)
    a, b = base[:8], base[10:18]
    apart = recent({"a": a, "b": b}, ())
    assert apart is not None
    for one, other in ((a, b), (b, a), (base[:8], base[8:16]), (a, b.copy()), (a.copy(), b.copy())):
        assert apart.are_like({"a": one, "b": other})
    for one, other in ((a, a), (a, base[4:12]), (base[7:15], a)):
        assert not apart.are_like({"a": one, "b": other})
    overlapping = recent({"a": a, "b": base[4:12]}, ())
    assert overlapping is not None
    assert overlapping.are_like({"a": base[:8], "b": base[4:12]})
    for one, other in ((a, b), (base[1:9], base[5:13]), (a.copy(), b.copy())):
        assert not overlapping.are_like({"a": one, "b": other})
    own = recent({"a": a.copy(), "b": b.copy()}, ())
    assert own is not None
    assert own.are_like({"a": np.zeros(8), "b": np.ones(8)})
    c = np.zeros(8)
    for one, other in ((c, c), (c, c[:])):
        assert not own.are_like({"a": one, "b": other})
    assert own.are_like({"a": a, "b": b})


def test_a_source_read_again_by_another_thread_meanwhile(monkeypatch):
    @orion.parallel_for
    def f(a):
        for i in range(a.shape[0]):
            a[i] = FACTOR

    preparation = f._preparations.plain
    prepared, first, a = preparation._found, FACTOR, np.zeros(4)

    def found_while_another_thread_calls(*arguments):
        one = prepared(*arguments)
        monkeypatch.setitem(globals(), "FACTOR", 7.0)
        preparation.typed(argument_types({"a": a})[0])
        return one

    monkeypatch.setattr(preparation, "_found", found_while_another_thread_calls)
    f(a)
    assert a[0] == first
    monkeypatch.setattr(preparation, "_found", prepared)
    f(a)
    assert a[0] == 7.0
