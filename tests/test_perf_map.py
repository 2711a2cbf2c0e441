"""`ORION_PERF=1`: perf maps that name compiled kernels with the user's function and line."""

import os
import re
import shutil
import stat
import subprocess
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from orion.kernel.build.perf import functions_of

ROOT = Path(__file__).resolve().parents[1]
LINE = re.compile(r"([0-9a-f]+) ([0-9a-f]+) (\S.*)")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="perf is Linux's")

PROGRAM = """
import os, sys
import numpy as np
import orion

@orion.parallel_for
def smooth(a, b):
    for i in range(1, a.shape[0] - 1):
        b[i] = np.sqrt(a[i - 1]) + a[i + 1]

@orion.parallel_for
def listed(n):
    found = {}
    for i in range(n):
        found[i] = i * 2.0
    return len(found)

@orion.parallel_for
def soften(c, d):  # of one form with `smooth`
    for k in range(1, c.shape[0] - 1):
        d[k] = np.sqrt(c[k - 1]) + c[k + 1]

a, b = np.ones(1_000_000), np.zeros(1_000_000)
with orion.session("threads", 2, force_parallel=True):
    smooth(a, b)
    listed(10)
    soften(a, b)
    for _ in range(int(sys.argv[1])):
        smooth(a, b)
print(os.getpid())
if len(sys.argv) > 2:
    child = os.fork()
    if not child:
        smooth(a, b)
        os._exit(0)
    os.waitpid(child, 0)
    print(child)
"""


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return str(tmp_path_factory.mktemp("cache"))


@pytest.fixture
def run(tmp_path, cache):
    (tmp_path / "train.py").write_text(PROGRAM)
    made = []

    def run(*arguments, before=(), **environment):
        variables = {**os.environ, "PYTHONPATH": str(ROOT), "ORION_CACHE": cache, **environment}
        command = [*before, sys.executable, "-W", "ignore", str(tmp_path / "train.py"), *arguments]
        found = subprocess.run(command, check=True, capture_output=True, text=True, env=variables, cwd=tmp_path)
        made.extend(map(int, re.findall(r"(?m)^\d+$", found.stdout)))
        return found

    yield run
    for process in made:
        map_of(process).unlink(missing_ok=True)


def map_of(process) -> Path:
    return Path(f"/tmp/perf-{process}.map")


def entries(process):
    lines = map_of(process).read_text().splitlines()
    matches = [LINE.fullmatch(line) for line in lines]
    assert all(matches), lines
    return [(int(one[1], 16), int(one[2], 16), one[3]) for one in matches]


def test_kernels_have_the_users_function_file_and_line(run, tmp_path):
    (process,) = map(int, run("0", ORION_PERF="1").stdout.split())
    found = entries(process)
    names = {name for _, _, name in found}
    assert f"orion::smooth:{tmp_path}/train.py:8" in names
    assert f"orion::listed:{tmp_path}/train.py:11" in names
    assert f"orion::soften:{tmp_path}/train.py:20" in names
    assert any(name.startswith("orion::walk") for name in names)
    assert all(size > 0 for _, size, _ in found)
    ordered = sorted((start, start + size) for start, size, _ in found)
    assert all(end <= start for (_, end), (start, _) in pairwise(ordered))
    assert stat.S_IMODE(map_of(process).stat().st_mode) == 0o600


def test_kernels_from_the_cache_are_named_too(run, tmp_path):
    run("0", ORION_PERF="0")
    (process,) = map(int, run("0", ORION_PERF="1").stdout.split())
    assert f"orion::smooth:{tmp_path}/train.py:8" in {name for _, _, name in entries(process)}


@pytest.mark.parametrize("value", ["", "0", "off"])
def test_without_it_there_is_no_map(run, value):
    (process,) = map(int, run("0", ORION_PERF=value).stdout.split())
    assert not map_of(process).exists()


def test_a_forked_process_has_a_map_of_its_own(run):
    parent, child = map(int, run("0", "fork", ORION_PERF="1").stdout.split())
    assert {name for _, _, name in entries(parent)} <= {name for _, _, name in entries(child)}


def test_perf_finds_them(run, tmp_path):
    if shutil.which("perf") is None:
        pytest.skip("perf is not installed")
    data = str(tmp_path / "perf.data")
    record = ["perf", "record", "-q", "-e", "cpu-clock:u", "-o", data, "--"]
    try:
        run("300", before=record, ORION_PERF="1")
    except subprocess.CalledProcessError as error:
        pytest.skip(f"perf may not record here: {error.stderr}")
    told = subprocess.run(["perf", "script", "-i", data, "-F", "ip,sym"], check=True, capture_output=True, text=True)
    found = Counter(re.findall(r"orion::\w+", told.stdout))
    assert found["orion::smooth"] > 10, found


def test_somebody_elses_file_is_left_alone(tmp_path, capsys):
    from orion.kernel.build import perf

    other = tmp_path / "other"
    other.write_text("mine\n")
    link = tmp_path / "perf-1.map"
    link.symlink_to(other)
    assert not perf.appended(link, ["1 2 x"])
    assert other.read_text() == "mine\n"
    assert "is not written" in capsys.readouterr().err


def test_what_is_no_object_file_has_no_functions():
    assert functions_of(b"") == []
    assert functions_of(b"\x7fELF" + bytes(100)) == []
