"""The example of a network whose copies are pulled together: what it learns, and how it ends."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
sys.path.insert(0, str(EXAMPLES))

import mlp  # noqa: E402

from tests.trials import one_in  # noqa: E402


@pytest.mark.parametrize("mode", one_in(2, mlp.MODES))
def test_it_learns(mode, capsys):
    given = ["--images", "4000", "--units", "16", "--epochs", "3", "--workers", "2", "--mode", mode]
    assert mlp.run(mlp.parse(given)) > 0.9
    assert "relaxed" in capsys.readouterr().out


def test_an_alpha_that_is_not_stable_ends_it(capsys):
    assert mlp.main(["--images", "20000", "--alpha", "0.9", "--workers", "2", "--epochs", "1"]) == 1
    assert "at most 2 / (2 + 1)" in capsys.readouterr().err
