"""The notebook in `examples/notebooks`: it runs as it stands, and is stored with what it shows.

ORION_WRITE_GOLDEN=1 stores the outputs of the run.
"""

import os
import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

PATH = Path(__file__).parents[1] / "examples" / "notebooks" / "sgd_mf.ipynb"


@pytest.fixture(scope="module")
def stored():
    return nbformat.read(PATH, as_version=4)


@pytest.fixture(scope="module")
def executed():
    """The notebook after a run; it raises where a cell does."""
    notebook = nbformat.read(PATH, as_version=4)
    NotebookClient(notebook, timeout=240, kernel_name="python3").execute()
    if os.environ.get("ORION_WRITE_GOLDEN"):
        nbformat.write(without_traces(notebook), PATH)
    return notebook


def without_traces(notebook):
    """The notebook without what says when and where it ran, nor the plain form of what has an HTML form."""
    notebook = nbformat.from_dict(notebook)
    notebook.metadata.pop("language_info", None)
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        for output in cell.get("outputs", []):
            if "text/html" in output.get("data", {}):
                output.data.pop("text/plain", None)
    return notebook


def outputs(notebook):
    return [output for cell in notebook.cells for output in cell.get("outputs", [])]


def printed(notebook):
    return "".join(output.text for output in outputs(notebook) if output.get("name") == "stdout")


def views(notebook):
    return [output.data["text/html"] for output in outputs(notebook) if "text/html" in output.get("data", {})]


def errors_of(text):
    return [float(value) for value in re.findall(r"RMSE ([\d.]+)", text)]


def test_it_runs(executed):
    assert [cell.execution_count for cell in executed.cells if cell.cell_type == "code"] == list(range(1, 12))
    assert not [output for output in outputs(executed) if output.output_type == "error"]
    said = "".join(output.text for output in outputs(executed) if output.get("name") == "stderr")
    assert [line for line in said.splitlines() if not line.startswith("orion: the first call of ")] == []


def test_it_shows_three_plans_and_learns(executed):
    parallel, serial, mended = views(executed)
    assert "1 loop, parallel" in parallel
    assert "1 loop, serial" in serial
    assert "ORN102" in serial
    assert "1 loop, parallel" in mended
    assert "SerialLoopWarning" in printed(executed)
    assert "the same counts: True" in printed(executed)
    assert "the same means: True" in printed(executed)
    errors = errors_of(printed(executed))
    assert len(errors) == 6
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 0.5 * errors[0]


def test_it_is_stored_with_its_outputs(stored, executed):
    assert PATH.stat().st_size < 300_000
    assert len(views(stored)) == len(views(executed)) == 3
    assert errors_of(printed(stored)) == pytest.approx(errors_of(printed(executed)), rel=0.05)


def test_nothing_stored_tells_of_a_machine(stored):
    text = PATH.read_text(encoding="utf-8")
    assert not re.search(r"ipykernel_\d|/home/|/root/|/Users/|/tmp/|C:\\\\", text)
    assert stored.metadata.kernelspec.name == "python3"
