"""`orion build`: signatures, annotations, and wrong usage."""

import sys
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import orion
from orion.cli.build.annotations import annotated
from orion.cli.build.signatures import SignatureError, Wanted, calls_of, parse_signature
from orion.cli.cli import main
from orion.cost.caches import caches_here
from orion.errors import ArgumentError

# ---------------------------------------------------------------- signatures


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("int64", Wanted("int64")),
        ("boolean", Wanted("bool")),
        ("int32=-3", Wanted("int32", value=-3)),
        ("float64[:]", Wanted("float64", (None,))),
        ("float32[:, ::1]", Wanted("float32", (None, None), "C")),
        ("float32[::1, :]", Wanted("float32", (None, None), "F")),
        ("complex64[3, :]", Wanted("complex64", (3, None))),
    ],
)
def test_arguments_are_read_as_numba_writes_them(text, expected):
    assert parse_signature((text,)) == (expected,)
    assert parse_signature(f"void({text}, {text})") == (expected, expected)
    assert parse_signature(f"float64({text})") == (expected,)
    assert parse_signature(text) == (expected,)


@pytest.mark.parametrize(
    "text", ["float63", "float64[", "float64[:", "float64[::2]", "x: int64", "float64[:]=3", "float64[::1, ::1]",
             "float64[:, ::1, :]", "list(int64)", "int64[-1]", "str", "float64[::1] int64"],
)  # fmt: skip
def test_what_is_no_signature_is_refused_with_what_would_be(text):
    with pytest.raises(SignatureError) as error:
        parse_signature((text,))
    assert text.strip() in str(error.value)


def shapes(signature):
    return [tuple(np.shape(one) for one in call) for call in calls_of(parse_signature(signature))]


def test_calls_are_of_several_sizes_orders_and_integers():
    calls = [*calls_of(parse_signature("float64[:, :], float64[:], int64"))]
    assert {call[0].shape for call in calls} == {(10, 10), (100, 100), (1000, 1000), (3162, 3162)}
    assert all(call[0].shape[0] == call[1].shape[0] for call in calls)
    assert {call[0].flags.c_contiguous for call in calls} == {True, False}
    assert {call[2] for call in calls} == {1, 2, 10, 100, 1000, 3162}
    assert {type(call[2]) for call in calls} == {int}


def test_sizes_that_are_said_are_taken():
    assert shapes("float64[5, ::1], float32, int64=3") == [((5, n), (), ()) for n in (10, 100, 1000, 3162)]
    calls = [*calls_of(parse_signature("int64[7], int64=3"))]
    assert [(array.tolist(), number) for array, number in calls] == [([*range(7)], 3)] * 2
    array, *_ = next(calls_of(parse_signature("float32[::1, :]")))
    assert array.flags.f_contiguous


def test_options_refuse_what_is_no_list_of_texts():
    for given in ("float64[:]", [3], [["float64[:]", 3]], None):
        with pytest.raises(ArgumentError, match="write a list of texts"):
            orion.parallel_for(signatures=given)
    made = orion.parallel_for(signatures=[["float64[:]", "int64"], "int64"])(lambda x, n: None)
    assert made.options.signatures == (("float64[:]", "int64"), "int64")


# ---------------------------------------------------------------- annotations

Matrix = np.ndarray[tuple[int, int], np.dtype[np.float32]]


def test_annotations_with_a_rank_are_enough():
    def scaled(A: Matrix, n: int, factor: float, small: np.float32, more=3):
        pass

    assert annotated(scaled) == (
        Wanted("float32", (None, None), "C"), Wanted("int64"), Wanted("float64"), Wanted("float32")
    )  # fmt: skip


def bare(x):
    pass


def ranked_by_nothing(x: NDArray[np.float64]):
    pass


def without_shape(x: np.ndarray):
    pass


def any_dtype(x: np.ndarray[tuple[int], np.dtype[Any]]):
    pass


def listed(x: list[float]):
    pass


def unknown(x: "Nothing"):  # noqa: F821
    pass


@pytest.mark.parametrize(
    ("function", "why"),
    [(bare, "no annotation"), (ranked_by_nothing, "how many dimensions"), (without_shape, "neither"),
     (any_dtype, "its dtype"), (listed, "neither"), (unknown, "cannot be read")],
)  # fmt: skip
def test_annotations_that_are_not_enough_say_what_is_missing(function, why):
    with pytest.raises(SignatureError, match=why):
        annotated(function)


# ---------------------------------------------------------------- wrong usage

PACKAGE = """
import numpy as np, orion

@orion.parallel_for
def twice(x):
    for i in range(x.shape[0]):
        x[i] *= 2.0
"""


@pytest.fixture
def package(tmp_path, monkeypatch, request):
    """A package with a name of its own, in the current folder."""
    name = f"built_{abs(hash(request.node.name))}"
    (tmp_path / name).mkdir()
    (tmp_path / name / "__init__.py").write_text(PACKAGE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield tmp_path / name
    for one in [*sys.modules]:
        if one.partition(".")[0] == name:
            del sys.modules[one]


def told(capsys, *arguments):
    code = main(["build", *arguments])
    return code, capsys.readouterr().err


@pytest.mark.parametrize("name", ["nowhere_at_all", "3x", "a b", "nowhere.at.all", "src/package", ""])
def test_no_module_of_that_name(package, capsys, name):
    code, err = told(capsys, name)
    assert code == 2
    assert "no module is named" in err
    assert err.count("\n") == 1


def test_a_module_that_is_no_package(package, capsys):
    package.with_name("alone_in_its_file.py").write_text(PACKAGE)
    code, err = told(capsys, "alone_in_its_file")
    assert code == 2
    assert "is no package" in err


def test_a_package_that_cannot_be_imported(package, capsys):
    (package / "__init__.py").write_text("1 / 0")
    assert told(capsys, package.name) == (
        2, f"orion: `{package.name}` cannot be imported: ZeroDivisionError: division by zero\n"
    )  # fmt: skip


def test_a_module_of_it_that_cannot_be_imported_is_told(package, capsys):
    (package / "__init__.py").write_text("")
    (package / "broken.py").write_text("raise SystemExit(3)")
    (package / "__main__.py").write_text("1 / 0")
    code, err = told(capsys, package.name)
    assert code == 1
    assert err == f"orion: not built: module `{package.name}.broken`: SystemExit: 3\n"


@pytest.mark.parametrize("cpu", ["z80", "", "x86-64-v9"])
def test_a_cpu_that_there_is_not(package, capsys, cpu):
    code, err = told(capsys, package.name, "--cpu", cpu)
    assert code == 2
    assert f"LLVM knows no CPU `{cpu}`" in err
    assert told(capsys, package.name, "--only")[0] == 2


@pytest.mark.parametrize("size", ["0", "-1", "many"])
def test_a_cache_that_there_is_not(package, capsys, size):
    with pytest.raises(SystemExit) as ended:
        main(["build", package.name, "--l2", size])
    assert ended.value.code == 2


@pytest.mark.parametrize("command", ["false", "no-such-program-anywhere", "'"])
def test_a_command_that_fails_builds_nothing(package, capsys, command):
    code, err = told(capsys, package.name, "--record", command)
    assert code == 2
    assert err.startswith(f"orion: --record {command}: ")
    assert not (package / "_orion").exists()


SIGNATURES = {
    "float63[:]": "is no argument of a signature",
    "float64[:], int64": "no call with its arguments can be planned, twice(): too many positional arguments",
    "int64": "no call with its arguments can be planned",
}


@pytest.mark.parametrize("signature", SIGNATURES)
def test_signatures_that_cannot_be_built_are_told(package, capsys, signature):
    text = PACKAGE.replace("parallel_for", f"parallel_for(signatures=['{signature}'])")
    (package / "__init__.py").write_text(text)
    code, err = told(capsys, package.name, "--l2", "1024")
    assert code == 1
    assert err.startswith("orion: not built: `twice`: ")
    assert SIGNATURES[signature] in err
    assert not (package / "_orion").exists()


def test_loops_that_nobody_has_asked_for_are_told(package, capsys):
    code, err = told(capsys, package.name)
    assert code == 1
    assert "`twice`: `x` has no annotation; give `signatures=[...]`, or call it under --record" in err


def test_a_folder_that_cannot_be_written(package, capsys):
    (package / "__init__.py").write_text(PACKAGE.replace("parallel_for", "parallel_for(signatures=['float64[8]'])"))
    (package / "_orion").write_text("")
    code, err = told(capsys, package.name)
    assert code == 2
    assert "cannot build into" in err


def test_loops_of_classes_are_found(package, capsys):
    body = PACKAGE.replace("\n@", "\nclass Filter:\n    @staticmethod\n    @")
    for line in ("        x", "    for", "def"):
        body = body.replace(f"\n{line}", f"\n    {line}")
    (package / "__init__.py").write_text("")
    (package / "inner.py").write_text(body)
    code, err = told(capsys, package.name)
    assert code == 1
    assert "`inner.Filter.twice`" in err


# ---------------------------------------------------------------- another machine's caches


def test_tiles_are_planned_for_the_cache_that_the_environment_says(monkeypatch):
    here = caches_here().second
    monkeypatch.setenv("ORION_L2", str(12345))
    assert caches_here().second == 12345
    for nothing in ("", "many", "-1"):
        monkeypatch.setenv("ORION_L2", nothing)
        assert caches_here().second == here
