"""README: one screen, its picture is that of its own loop, and its figures are those of the benchmarks."""

import os
import re
import subprocess
import sys

from tests.test_documentation import ROOT, blocks

README = ROOT / "README.md"
PICTURE = ROOT / "docs" / "figures" / "sgd-epoch.svg"
MOST_WORDS = 700


def text():
    return README.read_text(encoding="utf-8")


def test_it_is_one_screen():
    assert len(text().split()) <= MOST_WORDS


def test_its_picture_is_the_plan_of_its_loop(tmp_path):
    """`ORION_WRITE_GOLDEN=1` writes the picture, as for other pictures and texts."""
    loop = next(block for block in blocks(README) if block.language == "python")
    program = tmp_path / "sgd.py"  # the title of the picture has this name
    program.write_text(loop.text, encoding="utf-8")
    around = os.environ | {"ORION_WORKERS": "4"}
    subprocess.run([sys.executable, program.name], cwd=tmp_path, env=around, check=True, timeout=240)
    made = (tmp_path / PICTURE.name).read_text(encoding="utf-8")
    if os.environ.get("ORION_WRITE_GOLDEN"):
        PICTURE.write_text(made, encoding="utf-8")
    assert made == PICTURE.read_text(encoding="utf-8")
    assert f"]({PICTURE.relative_to(ROOT)})" in text()


def test_its_files_are_there():
    named = [name for name in re.findall(r"\]\(([^)]+)\)", text()) if "://" not in name]
    assert len(named) > 8
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_its_figures_are_in_the_benchmarks():
    section = text().partition("## Five figures")[2].partition("\n## ")[0]
    rows = [[cell.strip() for cell in row.strip("|").split("|")] for row in re.findall(r"^\|.*\|$", section, re.M)[2:]]
    lines = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8").splitlines()
    assert len(rows) >= 4
    for name, *cells in rows:
        numbers = [cell.removesuffix(" ms") for cell in cells if cell.endswith(" ms")]
        measured = [set(line.replace("|", " ").split()) for line in lines if line.startswith(f"| {name.split(',')[0]}")]
        assert any(set(numbers) <= words for words in measured), name
    measured = "\n".join(line for line in lines if "Orion" in line or "Hogwild" in line)
    assert {"651", "192"} <= set(re.findall(r"(\d+) million", section)) <= set(re.findall(r"\d+", measured))
