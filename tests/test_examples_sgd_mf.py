"""The matrix factorization example: its files, its options, what it prints, and how it ends."""

from __future__ import annotations

import gzip
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import orion

EXAMPLES = Path(__file__).parents[1] / "examples"
sys.path.insert(0, str(EXAMPLES))

import sgd_mf  # noqa: E402
from ratings_data import Shape, generate  # noqa: E402
from sgd_mf_data import guess_columns, read, wanted_columns  # noqa: E402
from sgd_mf_options import parse_options  # noqa: E402

ANIME = EXAMPLES.parents[1] / "shared" / "data" / "anime" / "ratings.tsv.gz"
EPOCH_LINE = re.compile(r"^ +(\d+) +(\d+\.\d{8}) +(\d+\.\d{8})", re.MULTILINE)

RATINGS = [(10, 7, 4.0), (10, 300_000, 2.5), (99, 7, 5.0), (12, 8, 1.0)]
FORMS = {
    "ratings.dat": ("", "{}::{}::{}::978300760\n", None),
    "ratings.csv": ("userId,movieId,rating,timestamp\n", "{},{},{},1147880044\n", None),
    "swapped.csv": ("rating,item,user\n", "{2},{1},{0}\n", None),
    "quoted.csv": ('"User ID","Item ID","Rating"\n', '"{}","{}","{}"\n', None),
    "ratings.tsv": ("User_ID\tAnime_ID\tFeedback\n", "{}\t{}\t{}\n", None),
    "unnamed.tsv": ("", "{}\t{}\t{}\n", None),
    "packed.tsv.gz": ("User_ID\tAnime_ID\tFeedback\n", "{}\t{}\t{}\n", None),
    "packed.dat.gz": ("", "{}::{}::{}::978300760\n", None),
    "u.data": ("", "{};{};{}\n", ";"),
}


def write(path: Path, text: str) -> Path:
    """A text file, packed if its name says so."""
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text)
    return path


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of 20,000 ratings."""
    ratings = generate(Shape(200, 300, 20_000, (0.9, 1.2), (20, 20)))
    rows = zip(ratings.users, ratings.items, ratings.stars, strict=True)
    text = "".join(f"{user},{item},{stars}\n" for user, item, stars in rows)
    return write(tmp_path_factory.mktemp("ratings") / "small.csv", f"user,item,stars\n{text}")


def errors_in(text: str) -> list[tuple[str, str, str]]:
    """Epoch, train RMSE and test RMSE of each line, as they were printed."""
    return EPOCH_LINE.findall(text)


# ------------------------------------------------------------ files


@pytest.mark.parametrize("name", FORMS)
def test_every_form_of_file_gives_the_same_ratings(tmp_path: Path, name: str) -> None:
    header, line, sep = FORMS[name]
    path = write(tmp_path / name, header + "".join(line.format(*rating) for rating in RATINGS))
    ratings = read(path, guess_columns(path, sep), sep)
    # Users 10, 12, 99 and items 7, 8, 300000 become 0, 1, 2.
    assert ratings.users.tolist() == [0, 0, 2, 1]
    assert ratings.items.tolist() == [0, 2, 0, 1]
    assert ratings.stars.tolist() == [4.0, 2.5, 5.0, 1.0]
    assert ratings.shape == (3, 3)
    assert (ratings.users.dtype, ratings.stars.dtype) == (np.int32, np.float32)


@pytest.mark.parametrize(
    ("header", "columns"),
    [
        ("userId,movieId,rating,timestamp", ("userId", "movieId", "rating")),
        ("rating,item,user", ("user", "item", "rating")),
        ("user\tthing\tstars", ("user", "thing", "stars")),
        ("timestamp\tcustomer\tproduct\tscore", ("customer", "product", "score")),
        ("user,rating", (0, 1, 2)),
        ("a,b,c", (0, 1, 2)),
        ("1::1193::5::978300760", (0, 1, 2)),
        ("", (0, 1, 2)),
    ],
)
def test_columns_are_guessed_from_the_header(tmp_path: Path, header: str, columns: tuple[str | int, ...]) -> None:
    assert guess_columns(write(tmp_path / "ratings", f"{header}\n")) == columns


def test_columns_can_be_named_and_counted() -> None:
    assert wanted_columns(["2", "item id", "1"]) == (1, "item id", 0)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("bad.csv", "user,item,rating\n1,2,3\n1,x,4\n", "line 3, column 2 ('item'): 'x' is not an integer"),
        ("short.tsv", "1\t2\t3\n1\t2\n", "line 2: 2 columns, where the first line has 3"),
        ("two.csv", "user,item\n1,2\n", "no column 3, counted from 1: its lines have 2"),
        ("tabs.csv", "1\t2\t3\n", "if the columns are separated by something else, say --sep"),
        ("ratings", "1,2,3\n", "say --sep ','"),
        ("far.csv", "1,2,3\n10000000000,3,4\n", "line 2, column 1: the id is 10000000000"),
        ("nan.csv", "1,2,3\n1,3,nan\n", "line 2, column 3"),
        ("empty.csv", "", "empty.csv is empty"),
        ("header.csv", "user,item,rating\n", "of 0 ratings"),
        ("one.csv", "1,2,3\n", "of 1 ratings, a share of 0.1"),
    ],
)
def test_a_bad_file_is_an_error_without_traceback(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, text: str, message: str
) -> None:
    assert sgd_mf.main(["--ratings", str(write(tmp_path / name, text))]) == 1
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert message in error
    assert "Traceback" not in error
    for word in ("sep=", "shape=", "counted from 0"):  # of the function, not of the command line
        assert word not in error


def test_no_ratings_to_train_on_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert sgd_mf.main(["--ratings", str(write(tmp_path / "one.csv", "1,2,3\n")), "--test", "0.9"]) == 1
    assert "leaves 0 to train on and 1 to test with" in capsys.readouterr().err


def test_a_missing_and_a_damaged_file_are_errors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert sgd_mf.main(["--ratings", str(tmp_path / "none.csv")]) == 1
    assert "there is no file" in capsys.readouterr().err
    damaged = tmp_path / "damaged.csv.gz"
    damaged.write_bytes(gzip.compress(b"1,2,3\n" * 1000)[:40])
    assert sgd_mf.main(["--ratings", str(damaged)]) == 1
    assert "damaged.csv.gz" in capsys.readouterr().err


# ------------------------------------------------------------ options


@pytest.mark.parametrize(
    "arguments",
    [
        ["--rank", "0"],
        ["--epochs", "2.5"],
        ["--step", "-1"],
        ["--step", "nan"],
        ["--reg", "-0.1"],
        ["--test", "1"],
        ["--seed", "-3"],
        ["--workers", "none"],
        ["--backend", "mpi"],
        ["--optimizer", "adam"],
        ["--columns", "0", "1", "2"],
        ["--sep", ";"],
        ["--ratings", "ratings.csv", "--columns", "0", "1", "2"],
        ["--ratings", "ratings.csv", "--columns", "2", "1", "2"],
        ["--size", "1m", "--ratings", "ratings.csv"],
        ["--backend", "serial", "--workers", "2"],
        ["--unknown"],
    ],
)
def test_wrong_options_exit_with_2(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        sgd_mf.main(arguments)
    assert exit_.value.code == 2
    assert "usage:" in capsys.readouterr().err


def test_columns_are_printed_as_they_are_given(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "a.csv", "".join(f"5,{k},{k % 7},{k % 3 + 1}\n" for k in range(100)))
    options = ["--ratings", str(path), "--columns", "2", "3", "4", "--epochs", "1", "--rank", "2", "--no-compare"]
    assert sgd_mf.main([*options, "--backend", "serial"]) == 0
    output = capsys.readouterr().out
    assert "(a.csv, columns 2, 3, 4)" in output
    assert "100 users x 7 items" in output


def test_the_help_has_the_defaults(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse_options(["--help"])
    output = " ".join(capsys.readouterr().out.split())
    assert "to test with (default: 0.1)" in output
    assert "by name or counted from 1" in output


def test_a_tab_can_be_written_as_backslash_t() -> None:
    assert parse_options(["--ratings", "u.data", "--sep", r"\t"]).sep == "\t"


# ------------------------------------------------------------ training


@pytest.mark.parametrize("optimizer", ["sgd", "adagrad"])
def test_the_error_falls_on_threads(small: Path, capsys: pytest.CaptureFixture[str], optimizer: str) -> None:
    options = ["--optimizer", optimizer, "--backend", "threads", "--workers", "2", "--rank", "8", "--no-compare"]
    assert sgd_mf.main(["--ratings", str(small), "--epochs", "6", *options]) == 0
    output = capsys.readouterr().out
    errors = errors_in(output)
    assert [int(epoch) for epoch, _, _ in errors] == list(range(7))
    for falling in ([float(line[1]) for line in errors], [float(line[2]) for line in errors]):
        assert falling[-1] < 0.95 * falling[0]
    # The table trains again, in one call, and ends where the lines did.
    assert f"{errors[-1][2]}" in output.splitlines()[-2]
    assert "serial Python" not in output


def test_the_compiled_loops_do_what_the_interpreter_does(small: Path) -> None:
    for optimizer in ("sgd", "adagrad"):
        options = parse_options(["--ratings", str(small), "--optimizer", optimizer, "--rank", "8"])
        data = sgd_mf.load(options)
        compiled, interpreted = sgd_mf.Training(data, options), sgd_mf.Training(data, options)
        with orion.session(backend="threads", workers=1):
            compiled.train(1)
        order = compiled.plan().serial_order(1)
        keys = zip(*(keys[order].tolist() for keys in data.train.coords), strict=True)
        ratings = list(zip(keys, data.train.values[order], strict=True))
        interpreted.loop.serial(ratings, *interpreted.state, interpreted.step, interpreted.reg, 1)
        for ours, theirs in zip(compiled.state, interpreted.state, strict=True):
            np.testing.assert_allclose(ours.to_numpy(), theirs.to_numpy(), rtol=2e-4, atol=2e-5)


def test_a_step_too_large_is_an_error(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert sgd_mf.main(["--ratings", str(small), "--step", "1e6", "--backend", "threads", "--no-compare"]) == 1
    assert "diverged in epoch 1: step 1e+06 or" in capsys.readouterr().err


# ------------------------------------------------------------ the table, and the ends


def without_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let Ray fail to start."""
    timed = sgd_mf.timed

    def failing(data: sgd_mf.Data, options: object, backend: str) -> sgd_mf.Row:
        if backend == "ray":
            raise orion.WorkerLostError("Ray did not start")
        return timed(data, options, backend)

    monkeypatch.setattr(sgd_mf, "timed", failing)


def test_the_table_has_every_backend_and_says_which_could_not_run(
    small: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    without_ray(monkeypatch)
    assert sgd_mf.main(["--ratings", str(small), "--epochs", "2", "--rank", "8"]) == 0
    output = capsys.readouterr().out
    final = errors_in(output)[-1][2]
    for title in ("compiled serial ", "threads "):
        (row,) = [line for line in output.splitlines() if line.strip().startswith(title)]
        assert row.rstrip().endswith(final)
    assert "serial Python: an epoch in plain Python, extrapolated from 100 %" in output
    assert "Ray: not run: Ray did not start" in output


def test_ray_that_was_asked_for_must_run(
    small: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    without_ray(monkeypatch)
    options = parse_options(["--ratings", str(small), "--backend", "ray"])
    with pytest.raises(orion.WorkerLostError):
        sgd_mf.compare(sgd_mf.load(options), options, "ray", sgd_mf.Report())


def test_control_c_ends_the_program_with_130(small: Path) -> None:
    command = [sys.executable, "-u", str(EXAMPLES / "sgd_mf.py"), "--ratings", str(small), "--epochs", "100000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        for line in process.stdout:
            if line.startswith("    5 "):
                process.send_signal(signal.SIGINT)
                break
        process.stdout.read()
        progress = re.compile(r"[\w ,]+: (\d+ of \d+, )?\d+ s")  # which slow machines show
        told = [line for line in process.stderr.read().splitlines() if not progress.fullmatch(line)]
        assert told == ["interrupted"]
    assert process.returncode == 130


@pytest.mark.ray
def test_ray_gives_the_same_digits_as_threads(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    printed = []
    for backend in ("threads", "ray"):
        options = ["--ratings", str(small), "--epochs", "3", "--backend", backend, "--workers", "2", "--no-compare"]
        assert sgd_mf.main(options) == 0
        printed.append(errors_in(capsys.readouterr().out))
    assert len(printed[0]) == 4
    assert printed[0] == printed[1]


@pytest.mark.data
@pytest.mark.skipif(not ANIME.exists(), reason="needs ../shared/data/anime/ratings.tsv.gz")
def test_real_ratings_train(capsys: pytest.CaptureFixture[str]) -> None:
    assert sgd_mf.main(["--ratings", str(ANIME), "--no-compare", "--backend", "threads"]) == 0
    output = capsys.readouterr().out
    errors = [float(test) for _, _, test in errors_in(output)]
    assert "4,714 users x 7,157 items" in output
    assert "columns User_ID, Anime_ID, Feedback" in output
    assert errors[-1] < 1.23 < errors[0]
