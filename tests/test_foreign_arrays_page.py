"""The guide's table of arrays of other libraries says what is measured here."""

import pytest

from docs.arrays_of_others import KINDS, PAGE, row_of


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_its_row_is_measured(kind):
    pytest.importorskip(kind.library)
    row = row_of(kind)
    assert f"| {' | '.join(row)} |" in PAGE.read_text(encoding="utf-8").splitlines()
    assert row[-1] == "0"
