"""The decomposition of tensors in the examples: what it computes, on both backends, and what files it takes."""

from __future__ import annotations

import gzip
import sys
from pathlib import Path

import numpy as np
import pytest

import orion

EXAMPLES = Path(__file__).parents[1] / "examples"
sys.path.insert(0, str(EXAMPLES))

import tensor_cp  # noqa: E402
import tensor_data  # noqa: E402
from pictures import read_png  # noqa: E402

SMALL = ["--shape", "30", "24", "20", "--nonzeros", "2000", "--rank", "3"]


def dense(tensor):
    found = np.zeros(tensor.shape)
    found[tensor.indices] = tensor.values
    return found


def model_of(found):
    """All elements of a model."""
    return np.einsum("r,ir,jr,kr->ijk", found.weights, *found.factors)


def run(*arguments):
    return tensor_cp.run(tensor_cp.parse([*SMALL, *arguments]))


def fits(text):
    """The fits of the lines that are printed as the program runs."""
    lines = text.partition("milliseconds\n")[2].splitlines()
    return [float(line.split()[1]) for line in lines if line.strip()[:1].isdigit()]


# ------------------------------------------------------------------------------------------------ the loops


@pytest.mark.parametrize("mode", range(3))
@pytest.mark.parametrize("workers", [1, 2])
def test_the_product_is_that_of_the_dense_tensor(mode, workers):
    tensor = tensor_data.generated((13, 11, 7), 300, 4, 0.5, 0)
    with orion.session(workers=workers, force_parallel=True):
        als = tensor_cp.AlternatingLeastSquares(tensor, 5, 1)
        tensor_cp.mttkrp(*als.arguments(mode))
    A, B, C = als.factors
    text = ("ijk,jr,kr->ir", "ijk,ir,kr->jr", "ijk,ir,jr->kr")[mode]
    others = [factor for at, factor in enumerate((A, B, C)) if at != mode]
    np.testing.assert_allclose(als.products[mode], np.einsum(text, dense(tensor), *others), rtol=1e-12, atol=1e-12)


def test_the_loops_are_parallel():
    tensor = tensor_data.generated((13, 11, 7), 300, 4, 0.5, 0)
    with orion.session(workers=2, force_parallel=True):
        als = tensor_cp.AlternatingLeastSquares(tensor, 5, 1)
        sgd = tensor_cp.GradientDescent(tensor, 5, 1, 0.02, 0.0)
        plans = [tensor_cp.mttkrp.plan(*als.arguments(mode)) for mode in range(3)]
        plans.append(tensor_cp.sgd_epoch.plan(sgd.elements, *sgd.factors, 0.02, 0.0))
        plans.append(tensor_cp.squared_error.plan(sgd.elements, *sgd.factors))
    for plan in plans:
        plan.check(2)
    assert [plan.strategy for plan in plans] == ["independent"] * 3 + ["nd", "independent"]


def test_an_epoch_is_one_of_plain_python():
    tensor = tensor_data.generated((6, 5, 4), 60, 2, 0.5, 0)
    sgd = tensor_cp.GradientDescent(tensor, 3, 1, 0.05, 0.01)
    A, B, C = (factor.copy() for factor in sgd.factors)
    with orion.session(workers=2, force_parallel=True):
        plan = tensor_cp.sgd_epoch.plan(sgd.elements, *sgd.factors, 0.05, 0.01)
        tensor_cp.sgd_epoch(sgd.elements, *sgd.factors, 0.05, 0.01)
    for at in plan.serial_order():
        i, j, k = (part[at] for part in tensor.indices)
        a, b, c = A[i].copy(), B[j].copy(), C[k].copy()
        error = tensor.values[at] / sgd.scale - np.sum(a * b * c)
        A[i] += 0.05 * (error * b * c - 0.01 * a)
        B[j] += 0.05 * (error * a * c - 0.01 * b)
        C[k] += 0.05 * (error * a * b - 0.01 * c)
    for found, expected in zip(sgd.factors, (A, B, C), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12)


# ------------------------------------------------------------------------------------------------ the iterations


def test_a_tensor_of_low_rank_is_found_again(capsys):
    found = run("--noise", "0", "--iterations", "60", "--workers", "2", "--seed", "1")
    tensor = tensor_data.generated((30, 24, 20), 2000, 3, 0.0, 1)
    assert fits(capsys.readouterr().out)[-1] > 0.9999
    np.testing.assert_allclose(model_of(found), dense(tensor), atol=1e-4)


def test_the_printed_fit_is_that_of_the_dense_tensor(capsys):
    tensor = tensor_data.generated((30, 24, 20), 2000, 3, 0.3, 0)
    size = np.linalg.norm(dense(tensor))
    for how in ("als", "sgd"):
        found = run("--noise", "0.3", "--iterations", "4", "--workers", "2", "--how", how)
        off = dense(tensor) - model_of(found)
        off = off if how == "als" else off[tensor.indices]
        assert fits(capsys.readouterr().out)[-1] == pytest.approx(1 - np.linalg.norm(off) / size, abs=1e-6)


def test_stored_elements_are_met(capsys):
    run("--noise", "0", "--iterations", "150", "--how", "sgd", "--decay", "0", "--step", "0.05", "--workers", "2")
    told = fits(capsys.readouterr().out)
    assert told[-1] > 0.98
    assert told[-1] > told[0]


def test_more_components_than_the_tensor_has(capsys):
    found = run("--noise", "0", "--iterations", "40", "--rank", "9")
    assert all(np.isfinite(factor).all() for factor in found.factors)
    assert np.isfinite(fits(capsys.readouterr().out)).all()


def iterated(how, backend, workers):
    """The factor matrices after five iterations, in which all workers take part."""
    tensor = tensor_data.generated((60, 50, 40), 9_000, 4, 0.2, 0)
    with orion.session(backend, workers, force_parallel=True):
        if how == "als":
            model = tensor_cp.AlternatingLeastSquares(tensor, 5, 1)
            plan = tensor_cp.mttkrp.plan(*model.arguments(0))
        else:
            model = tensor_cp.GradientDescent(tensor, 5, 1, 0.02, 0.001)
            plan = tensor_cp.sgd_epoch.plan(model.elements, *model.factors, 0.02, 0.001)
        assert plan.loops[0].runs_on == workers
        for _ in range(5):
            model.iterate()
    return model.factors


@pytest.mark.parametrize("how", ["als", "sgd"])
def test_the_bits_do_not_depend_on_the_workers(how):
    alone = iterated(how, "threads", 1)
    for backend, workers in (("threads", 2), ("threads", 4), ("serial", 1)):
        for one, two in zip(alone, iterated(how, backend, workers), strict=True):
            np.testing.assert_array_equal(one, two)


@pytest.mark.ray
@pytest.mark.parametrize("how", ["als", "sgd"])
def test_the_bits_are_those_of_ray(how):
    for one, two in zip(iterated(how, "threads", 2), iterated(how, "ray", 2), strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.ray
@pytest.mark.parametrize("how", ["als", "sgd"])
def test_the_program_runs_on_ray(how, capsys):
    arguments = ["--how", how, "--iterations", "3", "--workers", "2"]
    run(*arguments)
    here = fits(capsys.readouterr().out)
    run(*arguments, "--backend", "ray")
    assert fits(capsys.readouterr().out) == here


# ------------------------------------------------------------------------------------------------ files and options


@pytest.mark.parametrize("packed", [False, True])
def test_a_file(packed, tmp_path, capsys):
    text = "# a comment\n1 1 1 2.0\n\n3 2 1 -1e1  # and another\n1 1 4 0.5\n1 1 1 1\n"
    path = tmp_path / ("a.tns.gz" if packed else "a.tns")
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    tensor = tensor_data.read_tensor(path)
    assert tensor.shape == (3, 2, 4)
    assert [part.tolist() for part in tensor.indices] == [[0, 0, 2], [0, 0, 1], [0, 3, 0]]
    assert tensor.values.tolist() == [3.0, 0.5, -10.0]  # what stands twice is added up
    assert tensor_cp.main(["--tensor", str(path), "--rank", "3", "--iterations", "50"]) == 0
    told = capsys.readouterr().out
    assert f"{path.name}: 3 × 2 × 4, 3 elements; 3 components to find" in told
    assert fits(told)[-1] == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "there is no element in it"),
        ("# nothing\n", "there is no element in it"),
        ("1 1 1 1\n1 1 1\n", "line 2: four numbers are needed, `i j k value`, not 3: '1 1 1'"),
        ("1 1 1 1 5.0\n", "line 1: four numbers are needed, `i j k value`, not 5"),
        ("# head\n\n1 0 1 2\n", "line 3: '0' is no index, an integer from 1 on"),
        ("1 1 1.5 2\n", "line 1: '1.5' is no index"),
        ("1 -1 1 2\n", "line 1: '-1' is no index"),
        ("1 1 1 x\n", "line 1: 'x' is no number"),
        ("1 1 1 nan\n", "line 1: 'nan' is no finite number"),
        ("1 1 99999999999999999999 1\n", "line 1: '99999999999999999999' is no index of 64 bits"),
        ("1 1 9000000000 1\n9000000000 1 1 1\n", "too large a shape"),
        ("1 1 1 0\n", "all elements are zero"),
    ],
)
@pytest.mark.parametrize("how", ["als", "sgd"])
def test_a_file_that_is_no_tensor(text, message, how, tmp_path, capsys):
    path = tmp_path / "a.tns"
    path.write_text(text)
    assert tensor_cp.main(["--tensor", str(path), "--how", how]) == 1
    told = capsys.readouterr().err
    assert str(path) in told
    assert message in told


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.tns", b"1 1 1 1\n\xff\xfe\n", "is no text"),
        ("a.tns.gz", b"1 1 1 1\n", "cannot be unpacked"),
        ("a.tns.gz", gzip.compress(b"1 1 1 1\n" * 999, mtime=0)[:-12], "cannot be unpacked"),
    ],
)
def test_a_file_that_cannot_be_read(name, data, message, tmp_path, capsys):
    path = tmp_path / name
    path.write_bytes(data)
    assert tensor_cp.main(["--tensor", str(path)]) == 1
    assert f"{path} {message}" in capsys.readouterr().err
    assert tensor_cp.main(["--tensor", str(tmp_path / "none.tns")]) == 1
    assert "none.tns" in capsys.readouterr().err


def test_too_large_a_step_is_said(tmp_path, capsys):
    path = tmp_path / "a.png"
    assert tensor_cp.main([*SMALL, "--how", "sgd", "--step", "50", "--picture", str(path)]) == 1
    assert "iteration 1 has no finite fit; with --how sgd a smaller --step may help" in capsys.readouterr().err
    assert not path.exists()


def test_the_components_are_drawn(tmp_path, capsys):
    path = tmp_path / "a.png"
    found = run("--noise", "0", "--iterations", "40", "--seed", "1", "--picture", str(path))
    told = capsys.readouterr().out
    assert f"written to {path}:\nthree panels from left to right, each of 3 bars" in told
    for text in ("A: the first indices, 1 to 30", "B: the second indices, 1 to 24", "C: the third indices, 1 to 20"):
        assert text in told
    drawn = read_png(path)
    assert drawn.shape == (384, 3 * 3 * 12 + 2 * 12)
    for column in range(3):  # each component's greatest entry is white, and those further down come later
        assert drawn[:, 12 * column + 5].max() == 255
    tops = [int(drawn[:, 12 * column + 5].argmax()) for column in range(3)]
    assert tops == sorted(tops)
    order = np.argsort(np.abs(found.factors[0]).argmax(axis=0), kind="stable")
    assert [top * 30 // 384 for top in tops] == np.abs(found.factors[0][:, order]).argmax(axis=0).tolist()


def test_generated_tensors_have_about_as_many_elements_as_asked_for():
    tensor = tensor_data.generated((60, 50, 40), 10_000, 5, 0.0, 2)
    assert 5_000 < len(tensor.values) < 15_000
    keys = np.ravel_multi_index(tensor.indices, tensor.shape)
    assert (np.diff(keys) > 0).all()
