"""Bad input to a loop: a clear error or the right result; arrays unchanged, and the workers can be used again."""

import numpy as np
import pytest

import orion

TABLE = np.arange(4.0)


@orion.parallel_for
def sgd(ratings, W, H, step):
    for (i, j), r in ratings:
        err = r - W[i] @ H[j]
        wi = W[i].copy()
        W[i] += step * err * H[j]
        H[j] += step * err * wi


@orion.parallel_for
def scale(a, factor):
    for i in range(a.shape[0]):
        a[i] = a[i] * factor


RATINGS = orion.sparse((np.array([0, 3, 5, 2]), np.array([1, 0, 2, 2])), np.array([1.0, 2.0, 3.0, 4.0]))


def factors(rows=6, columns=3, rank=4):
    rng = np.random.default_rng(0)
    return rng.normal(size=(rows, rank)), rng.normal(size=(columns, rank))


@pytest.fixture(params=[1, 2])
def workers(request):
    with orion.session(workers=request.param, force_parallel=True):
        yield request.param
        a = np.arange(100.0)  # the workers are still usable
        scale(a, 2.0)
        np.testing.assert_array_equal(a, 2.0 * np.arange(100.0))


def expect_refusal(error, fragments, W, H, ratings=RATINGS):
    before = W.copy(), H.copy()
    with pytest.raises(error) as caught:
        sgd(ratings, W, H, 0.1)
    for fragment in fragments:
        assert fragment in str(caught.value)
    np.testing.assert_array_equal(W, before[0])
    np.testing.assert_array_equal(H, before[1])


@pytest.mark.parametrize(
    ("rows", "columns", "fragments"),
    [
        (5, 3, ["`W[i]` leaves `W`", "`W.shape[0]` is 5", "i = 5", "err = r - W[i] @ H[j]", "test_bad_input.py:"]),
        (6, 2, ["`H[j]` leaves `H`", "j = 2"]),
        (0, 3, ["`W[i]` leaves `W`"]),
    ],
)
def test_keys_beyond_the_arrays(workers, rows, columns, fragments):
    expect_refusal(orion.OutOfBoundsError, fragments, *factors(rows, columns))


def test_out_of_bounds_is_an_index_error():
    with pytest.raises(IndexError):
        sgd(RATINGS, *factors(5, 3), 0.1)


def test_rows_of_different_length(workers):
    W, H = factors()
    expect_refusal(orion.OrionError, ["W[i] @ H[j]", "4", "3"], W, np.ascontiguousarray(H[:, :3]))


def test_the_same_array_twice(workers):
    W, _ = factors()
    expect_refusal(orion.AliasError, ["`W` and `H` share memory", "copy"], W, W)


def test_overlapping_views(workers):
    block = np.ones((8, 4))
    expect_refusal(orion.AliasError, ["`W` and `H` share memory"], block[:6], block[4:7])


def test_an_array_that_overlaps_itself(workers):
    @orion.parallel_for
    def mix(v):
        for i in range(v.shape[0]):
            for j in range(v.shape[1]):
                v[i, j] = v[i, j] * 3 + j

    base = np.arange(2003.0)
    with pytest.raises(orion.AliasError, match="`v` has elements that share memory with each other"):
        mix(np.lib.stride_tricks.as_strided(base, (2000, 4), (8, 8)))
    np.testing.assert_array_equal(base, np.arange(2003.0))


def test_views_without_a_common_element_are_fine(workers):
    W, H = factors()
    block = np.concatenate([W, H])
    sgd(RATINGS, block[:6], block[6:], 0.1)
    sgd(RATINGS, W, H, 0.1)
    np.testing.assert_array_equal(block, np.concatenate([W, H]))


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda W: np.asarray(W, order="F"), "column order"),
        (lambda W: np.repeat(W, 2, axis=1)[:, ::2], "every second column"),
        (lambda W: np.repeat(W, 2, axis=0)[::2], "every second row"),
        (lambda W: W[::-1].copy()[::-1], "reversed rows"),
    ],
)
def test_arrays_that_are_not_contiguous_give_the_right_result(workers, make, why):
    W, H = factors()
    expected_W, expected_H = factors()
    sgd(RATINGS, expected_W, expected_H, 0.1)
    strided = make(W)
    assert not strided.flags.c_contiguous, why
    sgd(RATINGS, strided, H, 0.1)
    np.testing.assert_allclose(strided, expected_W, rtol=1e-12)
    np.testing.assert_allclose(H, expected_H, rtol=1e-12)


def test_a_read_only_array_that_is_written(workers):
    W, H = factors()
    W.flags.writeable = False
    expect_refusal(orion.OrionError, ["`W`", "read-only"], W, H)


def test_a_read_only_array_that_is_only_read(workers):
    a, b = np.arange(50.0), np.zeros(50)
    a.flags.writeable = False
    copy_to(a, b)
    np.testing.assert_array_equal(a, b)


@orion.parallel_for
def copy_to(a, b):
    for i in range(a.shape[0]):
        b[i] = a[i]


def test_a_byte_swapped_array(workers):
    W, H = factors()
    expect_refusal(orion.ArgumentError, ["`W`", "byte order"], W.astype(W.dtype.newbyteorder()), H)


@pytest.mark.parametrize("value", [[[1.0]], "rows", None, object()], ids=["list", "str", "None", "object"])
def test_something_that_is_no_array(workers, value):
    _, H = factors()
    with pytest.raises(orion.ArgumentError, match="`W`"):
        sgd(RATINGS, value, H, 0.1)


def test_an_object_array(workers):
    W, H = factors()
    expect_refusal(orion.ArgumentError, ["`W`", "object"], W.astype(object), H)


def test_no_ratings_at_all(workers):
    none = orion.sparse((np.zeros(0, int), np.zeros(0, int)), np.zeros(0))
    W, H = factors()
    sgd(none, W, H, 0.1)
    np.testing.assert_array_equal(W, factors()[0])


def test_fewer_rows_than_workers():
    W, H = factors(1, 1)
    expected_W, expected_H = factors(1, 1)
    one = orion.sparse((np.array([0]), np.array([0])), np.array([2.0]))
    sgd.serial(one, expected_W, expected_H, 0.1)
    with orion.session(workers=4, force_parallel=True):
        plan = sgd.plan(one, W, H, 0.1)
        sgd(one, W, H, 0.1)
    assert plan.runs_on == 1
    assert "ORN121" in {reason.code for reason in plan.reasons}
    np.testing.assert_allclose(W, expected_W, rtol=1e-12)
    np.testing.assert_allclose(H, expected_H, rtol=1e-12)


def test_a_body_that_cannot_be_compiled(workers):
    @orion.parallel_for
    def open_files(a):
        for i in range(a.shape[0]):
            a[i] = len(open("x").read())  # noqa: SIM115

    a = np.ones(5)
    with pytest.raises(orion.UnsupportedLoopError) as caught:
        open_files(a)
    for fragment in ["open", 'a[i] = len(open("x").read())', "test_bad_input.py:"]:
        assert fragment in str(caught.value)
    np.testing.assert_array_equal(a, np.ones(5))


def test_missing_and_surplus_arguments():
    with pytest.raises(orion.ArgumentError, match="missing"):
        scale(np.ones(3))
    with pytest.raises(orion.ArgumentError, match="too many"):
        scale(np.ones(3), 1.0, 2.0)


def test_a_subscript_that_is_only_known_at_run_time(workers):
    @orion.parallel_for
    def gather(a, idx, out):
        for i in range(idx.shape[0]):
            out[i] = a[idx[i]]

    a, out = np.arange(4.0), np.zeros(3)
    gather(a, np.array([3, -1, 0]), out)
    np.testing.assert_array_equal(out, [3.0, 3.0, 0.0])
    with pytest.raises(orion.OutOfBoundsError, match=r"a\[idx\[i\]\]"):
        gather(a, np.array([0, 4, 0]), out)


def scatter(out, perm, x):
    for i in range(len(x)):
        k = perm[i, 1]
        out[k] = x[i]


@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
@pytest.mark.parametrize("wrong", [9, -10])
def test_the_place_of_a_wrong_subscript_is_told(wrong):
    perm = np.stack([np.arange(9), np.arange(9)], 1)
    perm[5, 1] = perm[7, 1] = wrong
    with pytest.raises(orion.OutOfBoundsError) as told:
        orion.parallel_for(scatter)(np.zeros(9), perm, np.ones(9))
    assert f"subscript {wrong} leaves `out`" in str(told.value)
    assert f"`perm[5, 1]` is {wrong}, and so are 1 more" in str(told.value)


@orion.parallel_for
def by_labels(lab, s):
    for i in range(lab.shape[0]):
        s[int(lab[i])] += 1.0


@orion.parallel_for
def by_named_labels(lab, s):
    for i in range(lab.shape[0]):
        k = int(lab[i])
        s[k] += 1.0


@orion.parallel_for
def gathered(idx, s):
    for i in range(idx.shape[0]):
        s[i] = TABLE[idx[i]]


@orion.parallel_for
def summed(idx, s):
    total = 0.0
    for i in range(idx.shape[0]):
        total += s[idx[i]]
    return total


@orion.parallel_for
def in_two_loops(idx, s, later):
    for i in range(idx.shape[0]):
        s[i] = TABLE[idx[i]]
    for i in range(later.shape[0]):
        later[i] = i


@orion.parallel_for
def in_rounds(idx, s, later):
    for _ in range(2):
        for i in range(idx.shape[0]):
            s[i] = TABLE[idx[i]]
        for i in range(later.shape[0]):
            later[i] = i


NO_INTEGER = "; this number is what NaN becomes as an integer, or a float that 64 bits do not hold"
CHANGED = "the subscript must be in -4 … 3{}; other iterations may have changed {} by then"


@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
@pytest.mark.parametrize(
    ("loop", "indices", "shown", "why", "told"),
    [
        (by_labels, [0.0, np.nan], -(2**63), "`lab[1]` is nan", CHANGED.format(NO_INTEGER, "`s`")),
        (by_named_labels, [0.0, np.inf], -(2**63), "`lab[1]` is inf", CHANGED.format(NO_INTEGER, "`s`")),
        (
            by_labels,
            [0.0, 1e30, np.nan],
            -(2**63),
            "`lab[1]` is 1e+30, and so are 1 m",
            CHANGED.format(NO_INTEGER, "`s`"),
        ),
        (by_labels, [0.0, 7.5], 7, "`lab[1]` is 7.5", CHANGED.format("", "`s`")),
        (gathered, [0, -(2**63)], -(2**63), "`idx[1]` is -9223", CHANGED.format(NO_INTEGER, "`s`")),
        (gathered, [0, 9], 9, "`idx[1]` is 9", CHANGED.format("", "`s`")),
        (gathered, np.array([0, 2**63 + 5], np.uint64), 2**63 + 5, "`idx[1]` is 9223372036854775813", CHANGED),
        (gathered, np.array([0, 2**63 - 1]), 2**63 - 1, "`idx[1]` is 9223372036854775807", CHANGED),
        (summed, [0, 9], 9, "`idx[1]` is 9", "the subscript must be in -4 … 3"),
        (in_two_loops, [0, 9], 9, "`idx[1]` is 9", CHANGED.format("", "`s`")),
        (in_rounds, [0, 9], 9, "`idx[1]` is 9", CHANGED.format("", "`s` and `later`")),
    ],
)
def test_what_is_told_of_a_wrong_subscript(loop, indices, shown, why, told):
    arguments = [np.asarray(indices), np.zeros(4), np.zeros(3)]
    with pytest.raises(orion.OutOfBoundsError) as caught:
        loop(*arguments[: 3 if loop in (in_two_loops, in_rounds) else 2])
    lines = str(caught.value).splitlines()
    assert f"subscript {shown} leaves" in lines[0]
    assert lines[-2].startswith(f"  why:  {why}")
    assert lines[-1] == f"  help: {told.format('', '`s`')}"
