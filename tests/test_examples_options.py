"""The command lines of the examples: each error names the option and its value, before anything is computed."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
sys.path.insert(0, str(EXAMPLES))

PROGRAMS = ("bpr", "gauss_seidel", "gbt", "graph", "kmeans", "lda", "lda_gibbs", "mlp", "pagerank", "sgd_mf",
            "sgd_mf_adarev", "slr", "tensor_cp", "triangular", "word2vec")  # fmt: skip
WRONG = [
    ("bpr --likes 0", "--likes: '0' is not a whole number from 1 on"),
    ("bpr --reg -1", "--reg: '-1' is not a finite number from 0 on"),
    ("gauss_seidel --side 7", "--side: '7' is not a whole number from 8 on"),
    ("gauss_seidel --strength nan", "--strength: 'nan' is not a finite number from 0 on"),
    ("gauss_seidel --contrast inf", "--contrast: 'inf' is not a finite number above 0"),
    ("gauss_seidel --picture gs.jpg", "--picture: 'gs.jpg' must be a file .png"),
    ("gbt --rows 10", "--rows: '10' is not a whole number from 100 on"),
    ("gbt --trees 0", "--trees: '0' is not a whole number from 1 on"),
    ("gbt --leaves 1", "--leaves: '1' is not a whole number from 2 on"),
    ("gbt --picture gbt.png", "--picture: 'gbt.png' must be a file .svg"),
    ("graph --skip -2", "--skip: '-2' is not a whole number from 0 on"),
    ("graph --pages 1", "--pages: '1' is not a whole number from 2 on"),
    ("kmeans --clusters 5 --points 4", "--clusters 5 is more than --points 4"),
    ("kmeans --tolerance -1", "--tolerance: '-1' is not a finite number from 0 on"),
    ("lda --alpha nan", "--alpha: 'nan' is not a finite number above 0"),
    ("lda --proposals 0", "--proposals: '0' is not a whole number from 1 to 64"),
    ("lda --topics 65537", "--topics: '65537' is not a whole number from 1 to 65536"),
    ("lda --seed 2147483648", "--seed: '2147483648' is not a whole number from 0 to 2147483647"),
    ("lda --picture a.jpg", "--picture: 'a.jpg' must be a file .svg or .png"),
    ("lda_gibbs --max-delay 0", "--max-delay: '0' is not a whole number from 1 on"),
    ("lda_gibbs --picture a.png", "--picture: 'a.png' must be a file .svg"),
    ("pagerank --skip -2", "--skip: '-2' is not a whole number from 0 on"),
    ("pagerank --links many", "--links: 'many' is not a whole number from 1 on"),
    ("pagerank --damping 1", "--damping: '1' is not a number between 0 and 1"),
    ("sgd_mf_adarev --max-delay 0", "--max-delay: '0' is not a whole number from 1 on"),
    ("sgd_mf_adarev --ratings a.csv --size 1m", "--size is about generated ratings: leave out --ratings"),
    ("slr --samples 9", "--samples: '9' is not a whole number from 10 on"),
    ("slr --max-delay none", "--max-delay: 'none' is not a whole number from 1 on"),
    ("slr --picture slr.png", "--picture: 'slr.png' must be a file .svg"),
    ("tensor_cp --step 0", "--step: '0' is not a finite number above 0"),
    ("tensor_cp --noise nan", "--noise: 'nan' is not a finite number from 0 on"),
    ("tensor_cp --shape 3 0 3", "--shape: '0' is not a whole number from 1 on"),
    ("tensor_cp --shape 2 2 2 --nonzeros 9", "--nonzeros 9 is more than the elements of --shape 2 × 2 × 2"),
    ("triangular --omega 2", "--omega: '2' is not a number between 0 and 2"),
    ("triangular --picture tri.svg", "--picture: 'tri.svg' must be a file .png"),
    ("word2vec --window 0", "--window: '0' is not a whole number from 1 on"),
    ("word2vec --step inf", "--step: 'inf' is not a finite number above 0"),
    ("word2vec --members 10", "--members: '10' is not a whole number from 11 on"),
]


def refused(program, arguments, capsys):
    """What a program says before it ends with 2; its file has the name of the program."""
    with pytest.raises(SystemExit) as ended:
        import_module(program).main(arguments)
    assert ended.value.code == 2
    told = capsys.readouterr()
    assert not told.out
    return told.err


@pytest.mark.parametrize(("command", "message"), WRONG)
def test_the_error_names_the_option_and_its_value(command, message, capsys):
    program, *arguments = command.split()
    assert message in refused(program, arguments, capsys)


@pytest.mark.parametrize("program", PROGRAMS)
def test_workers_and_seeds_are_refused_at_once(program, capsys):
    assert "--workers: '0' is not a whole number from 1 on" in refused(program, ["--workers", "0"], capsys)
    assert "--seed: '-1' is not a whole number from 0 " in refused(program, ["--seed", "-1"], capsys)
    told = refused(program, ["--backend", "serial", "--workers", "2"], capsys)
    assert "--workers 2: the serial backend has one worker" in told


@pytest.mark.parametrize(
    ("program", "ending"), [("gauss_seidel", "png"), ("gbt", "svg"), ("lda", "svg"), ("lda_gibbs", "svg"),
                            ("slr", "svg"), ("tensor_cp", "png"), ("triangular", "png")]
)  # fmt: skip
def test_a_picture_needs_a_folder_that_is_there(program, ending, tmp_path, capsys):
    path = tmp_path / "nothing" / f"a.{ending}"
    assert f"--picture: there is no folder '{path.parent}'" in refused(program, ["--picture", str(path)], capsys)
    path.mkdir(parents=True)
    assert "is a folder" in refused(program, ["--picture", str(path)], capsys)
