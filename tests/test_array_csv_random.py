"""Random text files: `read_csv` gives what Python's csv module reads, or names the first line that is wrong."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.oracles.csv_files import Reference, TextFile, check_file, make_file


@st.composite
def files(draw):
    return make_file(lambda options: draw(st.sampled_from(options)))


@settings(max_examples=200, deadline=None)
@given(files())
def test_the_same_rows_or_the_line_that_is_wrong(file):
    check_file(file)


def test_the_reference_finds_lines_that_are_wrong():
    file = TextFile('0,1,2,"a\n3,4,5,b"\n', ",", 0, False, True, 100, False)
    assert Reference(file).wrong == 1
    unclosed = file._replace(text='0,1,2,"a"\n3,4,5,"b')
    assert Reference(unclosed).wrong == 2
    assert Reference(unclosed._replace(quoted=False)).elements == [(0, 1, 2.0), (3, 4, 5.0)]
