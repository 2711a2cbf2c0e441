"""Arrays of other libraries as arguments: the loops work on their memory, and what cannot be viewed is refused."""

import array
import gc
import mmap
import re
import tracemalloc
import weakref

import numpy as np
import pytest

import orion
from orion.arrays.foreign import address_of, identity_of, viewed
from tests.foreign_arrays import (
    BYTES,
    NUMBERS,
    READ_ONLY,
    WRITEABLE,
    ByArray,
    ByDlpack,
    ByInterface,
    MadeEachTime,
    Negated,
    OnDevice,
    WithGradients,
    address,
    elements,
    mapped,
)


@orion.parallel_for
def double(x):
    for i in range(x.shape[0]):
        x[i] = 2 * x[i]
    return x


@orion.parallel_for
def total(x):
    found = 0.0
    for i in range(x.shape[0]):
        found += x[i]
    return found


@orion.parallel_for
def add(x, y):
    for i in range(x.shape[0]):
        x[i] += y[i]
    return x, y


@orion.parallel_for
def tail_and_new(x):
    new = np.zeros_like(x)
    for i in range(x.shape[0]):
        new[i] = 2 * x[i]
    return x[1:], new


@orion.parallel_for
def copied(x):
    x = x.copy()
    for i in range(x.shape[0]):
        x[i] = x[i] + 1
    return x


@orion.parallel_for
def grown(x):
    """Orion cannot analyse it, Numba compiles it."""
    found = []
    for i in range(x.shape[0]):
        found.append(x[i])
    n = 0
    while n < len(found):
        if found[n] > 3:
            found.append(-found[n])
        n += 1
    return len(found)


DOUBLED = [2, 4, 6, 8, 10]


@pytest.mark.parametrize("make", WRITEABLE.values(), ids=WRITEABLE.keys())
@pytest.mark.parametrize("backend", ["threads", "serial"])
def test_the_memory_is_changed_and_the_object_returned(make, backend):
    x = make()
    with orion.session(backend):
        assert double(x) is x
    assert elements(x) == DOUBLED


@pytest.mark.parametrize("make", WRITEABLE.values(), ids=WRITEABLE.keys())
def test_a_view_has_the_address_of_the_object(make):
    x = make()
    assert type(viewed(x)) is np.ndarray
    assert address_of(viewed(x)) == address(x)


@pytest.mark.parametrize("make", READ_ONLY.values(), ids=READ_ONLY.keys())
def test_what_is_read_only_is_read(make):
    x = make()
    assert address_of(viewed(x)) == address(x)
    assert total(x) == 15.0


@pytest.mark.parametrize("make", READ_ONLY.values(), ids=READ_ONLY.keys())
def test_what_is_read_only_is_not_written(make):
    x = make()
    with pytest.raises(orion.ArgumentError) as caught:
        double(x)
    what, _, help = str(caught.value).partition("\n")
    assert re.fullmatch(r"argument `x` is an? [\w.]+ that cannot be changed in place, and the loop writes it", what)
    assert elements(x) == NUMBERS.tolist()
    held = {"x": x, "np": np}
    exec(re.findall("`([^`]+)`", help)[0], held)
    assert elements(double(held["x"])) == DOUBLED


def test_a_copy_of_what_is_read_only_may_be_written():
    assert copied(ByArray(NUMBERS)).tolist() == [2, 3, 4, 5, 6]


def test_nothing_is_copied():
    large = ByDlpack(np.ones(1_000_000))
    bytes_ = array.array("d", large.data)
    for _ in range(5):
        double(large), double(bytes_)
    tracemalloc.start()
    double(large), double(bytes_)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 200_000, "an array takes 8 MB"
    assert large.data[-1] == bytes_[-1] == 64.0


# ---------------------------------------------------------------- results


def test_parts_are_views_and_new_arrays_are_numpys():
    x = ByDlpack(NUMBERS.copy())
    tail, new = tail_and_new(x)
    assert type(tail) is type(new) is np.ndarray
    assert np.shares_memory(tail, x.data)
    assert new.tolist() == DOUBLED


def test_each_result_is_the_object_that_was_passed():
    x, y = array.array("d", NUMBERS), NUMBERS.copy()
    first, second = add(x, y)
    assert first is x
    assert second is y


def test_calls_that_repeat():
    """The first calls look for all that they need, later ones compare it."""
    x, other, plain = ByDlpack(NUMBERS.copy()), array.array("d", NUMBERS), NUMBERS.copy()
    for _ in range(6):
        assert double(x) is x
    assert double._again is not None
    for _ in range(4):
        assert double(other) is other
        assert double(plain) is plain
    assert double._again is not None
    assert elements(x) == [64 * k for k in NUMBERS]
    assert elements(other) == plain.tolist() == [16 * k for k in NUMBERS]


# ---------------------------------------------------------------- other ways to run a function


def test_other_ways_to_run():
    x = ByDlpack(NUMBERS.copy())
    assert double.plan(x).strategy == "independent"
    assert "double(x)" in double.explain(x)
    assert "x[" in double.kernel_source(x)
    assert "the results are the same" in str(double.verify(x))
    assert double.measure(x, seconds=0.01).loops
    assert elements(x) == NUMBERS.tolist()
    assert double.debug(x) is x
    assert elements(x) == DOUBLED
    double(x)
    assert double.replay(double.last_run, x) is x
    assert elements(x) == [8 * k for k in NUMBERS]


def test_by_keyword():
    x = array.array("d", NUMBERS)
    assert double(x=x) is x
    assert elements(x) == DOUBLED


def test_what_runs_as_it_is():
    with pytest.warns(orion.SerialLoopWarning):
        assert grown(array.array("d", NUMBERS)) == 7


@pytest.mark.ray
def test_on_ray():
    x, y = ByDlpack(NUMBERS.copy()), array.array("d", NUMBERS)
    with orion.session("ray", 2, force_parallel=True):
        for _ in range(3):
            first, second = add(x, y)
            assert first is x
            assert second is y
        y.append(1.0)
    assert elements(x) == [4 * k for k in NUMBERS]


def test_each_call_knows_an_array_by_its_object():
    """What Orion keeps of an index array, or of what workers on Ray have of it, is not made anew in each call."""
    x, part = array.array("d", NUMBERS), memoryview(bytearray(BYTES))[1:]
    views = viewed(x), viewed(x)
    assert views[0] is not views[1]
    assert identity_of(views[0]) is identity_of(views[1]) is x
    assert identity_of(views[0][1:]) is not x
    assert identity_of(NUMBERS) is NUMBERS
    assert identity_of(viewed(part)) is part
    bytes_ = viewed(bytearray(BYTES))  # nothing refers weakly to a bytearray
    assert identity_of(bytes_) is bytes_


@orion.parallel_for
def scatter(out, at, x):
    for i in range(at.shape[0]):
        out[at[i]] = x[i]


def test_an_index_array_is_looked_at_once_and_again_when_it_changes():
    at, out = array.array("q", [4, 3, 2, 1, 0]), np.zeros(5)
    known = scatter._preparations.plain._properties
    for _ in range(3):
        scatter(out, at, NUMBERS)
        versions = [one.version for one in known._looked.values()]
        assert len(versions) == 1
    assert out.tolist() == NUMBERS[::-1].tolist()
    at[0] = 3
    with pytest.warns(orion.SerialLoopWarning):
        scatter(out, at, 10 * NUMBERS)
    assert out.tolist() == [50, 40, 30, 20, 1]


def test_distributed_arrays():
    x = array.array("d", NUMBERS)
    assert orion.array(x).to_numpy().tolist() == NUMBERS.tolist()
    assert orion.array(ByDlpack(NUMBERS)).to_numpy().tolist() == NUMBERS.tolist()
    dense = orion.array(NUMBERS)
    add(dense, x)
    assert dense.to_numpy().tolist() == DOUBLED


# ---------------------------------------------------------------- lifetimes


def test_objects_live_until_the_call_ends_and_no_longer():
    x = ByDlpack(NUMBERS.copy())
    for _ in range(5):
        double(x)
    found = weakref.ref(x)
    del x
    gc.collect()
    assert found() is None


def test_a_result_keeps_the_object_alive():
    (tail, _), found = tail_and_new(ByDlpack(NUMBERS.copy())), None
    gc.collect()
    assert found is None
    assert tail.tolist() == [2, 3, 4, 5]


def test_memory_can_be_resized_and_closed_after_a_call():
    x, buffer = array.array("d", NUMBERS), bytearray(BYTES)
    file = mapped(BYTES)
    for _ in range(5):
        double(x), double(file), total(buffer)
    with pytest.raises(orion.AliasError):
        add(x, x)
    x.append(1.0)
    buffer.append(1)
    file.close()
    assert isinstance(file, mmap.mmap)


@orion.parallel_for
def gather(out, at, x):
    for i in range(out.shape[0]):
        out[i] = x[at[i]]


def test_memory_can_be_resized_after_an_error():
    x, at = array.array("d", NUMBERS), array.array("q", [0, 1, 7, 3, 4])
    for error, call in (
        (orion.ArgumentError, lambda: add(ByArray(NUMBERS), x)),
        (orion.ArgumentError, lambda: add(x, [1.0])),
        (orion.OutOfBoundsError, lambda: gather(np.zeros(5), at, x)),
        (orion.OutOfBoundsError, lambda: gather(np.zeros(6), at, x)),
    ):
        with pytest.raises(error):
            call()
        x.append(1.0)
        x.pop()
        at.append(1)
        at.pop()


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("first", "second"),
    [(ByDlpack, lambda a: a), (lambda a: a, lambda a: ByInterface(a[1:])), (memoryview, ByDlpack)],
    ids=["object and array", "array and part", "two objects"],
)  # fmt: skip
def test_shared_memory(first, second):
    a = np.ones(5)
    for _ in range(4):
        with pytest.raises(orion.AliasError, match="`x` and `y` share memory") as caught:
            add(first(a[:4]), second(a)[:4] if second(a) is a else second(a))
    assert a.tolist() == [1.0] * 5
    assert ("`y.copy()`" in str(caught.value)) == (second(a) is a)


def test_the_same_object_twice():
    x = array.array("d", NUMBERS)
    with pytest.raises(orion.AliasError, match="share memory"):
        add(x, x)
    assert elements(x) == NUMBERS.tolist()


def test_elements_that_share_memory():
    x = ByDlpack(np.lib.stride_tricks.as_strided(np.ones(1), (4,), (0,)))
    assert total(x) == 4.0
    with pytest.raises(orion.AliasError, match=r"write `x = np\.from_dlpack\(x\)\.copy\(\)`"):
        double(x)


REFUSED = {
    "gradients": (
        lambda: WithGradients(NUMBERS),
        "requires gradients, which loops of Orion do not record",
        "`x.detach()`",
    ),
    "a device": (lambda: OnDevice(NUMBERS), "is on cuda:0, and loops run on the CPU", "`x_array = x.cpu()`"),
    "negated": (lambda: Negated(NUMBERS), "has elements that are negated when they are read", "`x = x.resolve_neg()`"),
    "half precision": (
        lambda: ByDlpack(NUMBERS.astype(np.float16)),
        "is a tests.ByDlpack of dtype float16",
        "`x = np.from_dlpack(x).astype(np.float32)`",
    ),
    "foreign byte order": (
        lambda: ByInterface(NUMBERS.astype(">f8")),
        "is a tests.ByInterface of dtype >f8",
        "`x = np.array(x).astype(float)`",
    ),
    "texts": (lambda: array.array("u", "abc"), "is an array.array of dtype <U1", "number its texts"),
    "no dimensions": (
        lambda: ByDlpack(np.array(3.0)),
        "is a tests.ByDlpack without dimensions",
        "`np.from_dlpack(x).item()`",
    ),
    "a copy": (
        lambda: ByArray(NUMBERS, copies=True),
        "is a tests.ByArray whose memory cannot be viewed",
        "np.array(x)",
    ),
    "made each time": (
        lambda: MadeEachTime(NUMBERS),
        "is a tests.MadeEachTime whose memory cannot be viewed",
        "np.array(x)",
    ),
}


@pytest.mark.parametrize(("make", "what", "help"), REFUSED.values(), ids=REFUSED.keys())
@pytest.mark.parametrize("function", [double, total])
def test_what_cannot_be_viewed(make, what, help, function):
    for run in (function, function.plan, function.verify, function.debug):
        with pytest.raises(orion.ArgumentError) as caught:
            run(make())
        text = str(caught.value)
        assert text.splitlines()[0] == f"argument `x` {what}"
        assert help in text


@orion.parallel_for
def raised(a, by):
    for i in range(a.shape[0]):
        a[i] += by


@pytest.mark.parametrize(
    ("call", "x"),
    [(double, WithGradients(NUMBERS.copy())), (lambda x: raised(np.ones(5), x), ByDlpack(np.array(3.0)))],
    ids=["gradients", "no dimensions"],
)  # fmt: skip
def test_what_is_to_be_passed_is_taken(call, x):
    with pytest.raises(orion.ArgumentError) as caught:
        call(x)
    (passed,) = re.findall("pass [^`]*`([^`]+)`", str(caught.value))
    call(eval(passed, {"np": np, "x": x, "by": x}))


def test_a_device_array_is_brought_and_taken_back():
    x = OnDevice(NUMBERS.copy())
    with pytest.raises(orion.ArgumentError) as caught:
        double(x)
    there, passed, back = re.findall("`([^`]+)`", str(caught.value).partition("help:")[2])
    held = {"x": x}
    exec(there, held)
    double(held[passed])
    exec(back, held)
    assert x.data.tolist() == DOUBLED


# ---------------------------------------------------------------- real libraries


def test_pandas():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"x": NUMBERS, "n": [1, 2, 3, 4, 5], "m": pandas.array([1, None, 3, 4, 5], dtype="Int64")})
    assert total(frame["x"]) == total(frame["n"]) == total(pandas.Index(NUMBERS)) == 15.0
    for series in (frame["x"], pandas.Index(NUMBERS)):
        with pytest.raises(orion.ArgumentError, match="cannot be changed in place"):
            double(series)
    assert frame["x"].tolist() == NUMBERS.tolist()
    with pytest.raises(orion.ArgumentError, match=r"`x` is a pandas\.Series whose memory cannot be viewed"):
        total(frame["m"])
    with pytest.raises(orion.ArgumentError, match="`x` is a DataFrame"):
        total(frame)
    out = NUMBERS.copy()
    add(out, frame["x"])
    assert out.tolist() == DOUBLED


def test_elements_of_a_series_go_by_position():
    pandas = pytest.importorskip("pandas")
    out = np.zeros(5)
    add(out, pandas.Series(NUMBERS, index=[4, 3, 2, 1, 0]))
    assert out.tolist() == NUMBERS.tolist()


def test_arrow():
    pyarrow = pytest.importorskip("pyarrow")
    assert total(pyarrow.array(NUMBERS)) == 15.0
    with pytest.raises(orion.ArgumentError, match="cannot be changed in place"):
        double(pyarrow.array(NUMBERS))
    with pytest.raises(orion.ArgumentError, match="no nulls"):
        total(pyarrow.array([1.0, None]))


def test_torch():
    torch = pytest.importorskip("torch")
    x = torch.arange(1.0, 6.0)
    for _ in range(5):
        assert double(x) is x
    assert x.tolist() == [32 * k for k in NUMBERS]
    assert total(torch.arange(1, 6)) == total(torch.arange(1.0, 11.0)[::2] / 25 * 15) == 15.0
    with pytest.raises(orion.AliasError):
        add(x, x.numpy())
    refused = {
        "requires gradients": torch.nn.Parameter(torch.ones(3)),
        "is on meta": torch.empty(3, device="meta"),
        "dtype torch.bfloat16": torch.ones(3, dtype=torch.bfloat16),
        "dtype torch.float16": torch.ones(3, dtype=torch.float16),
        "conjugated": torch.ones(3, dtype=torch.complex64).conj(),
        "negated": torch.ones(3, dtype=torch.complex64).conj().imag,
        "layout torch.sparse_coo": torch.ones(3).to_sparse(),
        "layout torch.sparse_csr": torch.ones(3, 3).to_sparse_csr(),
    }
    for what, tensor in refused.items():
        with pytest.raises(orion.ArgumentError, match=what):
            total(tensor)


def test_jax():
    jax = pytest.importorskip("jax")
    x = jax.numpy.arange(1.0, 6.0)
    assert address_of(viewed(x)) == x.unsafe_buffer_pointer()
    assert total(x) == 15.0
    with pytest.raises(orion.ArgumentError, match=r"`x = np\.array\(x\)`"):
        double(x)
    out = np.zeros(5, np.float32)
    first, second = add(out, x)
    assert first is out
    assert second is x
    with pytest.raises(orion.ArgumentError, match="dtype bfloat16"):
        total(x.astype(jax.numpy.bfloat16))
