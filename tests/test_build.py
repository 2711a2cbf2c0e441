"""`orion build`: the example package, built, installed in a fresh folder and called; what does not fit is compiled."""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import llvmlite.binding as llvm
import pytest

from orion.kernel.build.cpus import GENERIC, LEVELS, cpu_of, this_cpu
from orion.kernel.build.shipped import misfit, read_shipped, write_shipped

ROOT = Path(__file__).resolve().parents[1]
EXAMPLE = ROOT / "examples" / "package"
pytestmark = pytest.mark.skipif(
    not set(LEVELS[GENERIC]) <= set(this_cpu().needs), reason="kernels are built for CPUs with AVX2"
)

CALL = """
import json, sys
import numpy as np
import orion
from numba.core import event

if "version" in sys.argv:
    orion.__version__ = "99.0"
wanted, packages = sys.argv[1].split(","), sys.argv[2].split(",")
modules = [__import__(name) for name in packages]
with orion.session("threads", 2), event.install_recorder("numba:compile") as seen:
    found = []
    for module in modules:
        x, out = np.arange(1000.0), np.zeros(1000)
        image, other = np.arange(640000.0).reshape(800, 800) % 7.0, np.zeros((800, 800))
        if "smooth" in wanted:
            module.smooth(x, out)
        if "blur" in wanted:
            module.blur(image, other)
        if "relax" in wanted:
            module.relax(image, 4)
        found.append([float(out.sum()), float(other.sum()), float(image.sum())])
names = [one.data["dispatcher"].py_func for _, one in seen.buffer if one.is_start]
print(json.dumps([[f"{one.__module__}.{one.__name__}" for one in names], found, modules[0].__file__]))
"""


def run(command, *, cwd, **variables):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1", **variables}
    for name in ("PYTHONWARNINGS", "ORION_SHIPPED"):
        if name not in variables:
            environment.pop(name, None)
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=280, check=False)


def build(project, *arguments, module="smoothing"):
    done = run([sys.executable, "-m", "orion", "build", module, "--l2", "1024", *arguments], cwd=project)
    return done.returncode, done.stdout, done.stderr


def installed(project, site):
    """Install the wheel of a project in a folder. setuptools says what belongs into it; the wheel is zipped here, since
    its `bdist_wheel` needs another package."""
    say = "import setuptools; setuptools.setup()"
    done = run([sys.executable, "-W", "ignore", "-c", say, "-q", "build", "--build-lib", "built"], cwd=project)
    assert done.returncode == 0, done.stderr
    wheel = project / "smoothing-1.0-py3-none-any.whl"
    head = "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    with zipfile.ZipFile(wheel, "w") as file:
        for path in sorted((project / "built").rglob("*")):
            file.write(path, path.relative_to(project / "built"))
        file.writestr("smoothing-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: smoothing\nVersion: 1.0\n")
        file.writestr("smoothing-1.0.dist-info/WHEEL", head)
        file.writestr("smoothing-1.0.dist-info/RECORD", "")
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "-q",
        "--no-deps",
        "--no-index",
        "--target",
        str(site),
        str(wheel),
    ]
    done = run(command, cwd=project)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The example as a project that was built, installed in `site`, and a cache that has the walker alone."""
    folder = tmp_path_factory.mktemp("package")
    project = folder / "project"
    shutil.copytree(EXAMPLE, project, ignore=shutil.ignore_patterns("_orion", "__pycache__", "*.egg-info"))
    record = f"{sys.executable} -m pytest -q -p no:cacheprovider tests"
    code, out, err = build(project, "--cpu", "host", "--record", record)
    assert (code, err) == (0, ""), out + err
    assert "6 kernels" in out
    installed(project, folder / "site")
    (folder / "call.py").write_text(CALL)
    return folder


def call(folder, cache, *wanted, site=None, packages="smoothing", version=False, **variables):
    """What a process that finds the site alone compiles, and what it computes."""
    site = site or folder / "site"
    paths = {"PYTHONPATH": f"{site}{os.pathsep}{ROOT}", "ORION_CACHE": str(cache)}
    command = [sys.executable, "-W", "ignore", str(folder / "call.py"), ",".join(wanted), packages]
    done = run([*command, *(["version"] if version else [])], cwd=folder, **paths, **variables)
    assert (done.returncode, done.stderr) == (0, "")
    compiled, results, file = json.loads(done.stdout)
    assert file.startswith(str(site))
    return compiled, results


@pytest.fixture(scope="module")
def first(built):
    """What the first call on a machine compiles and computes, from the wheel."""
    cache = built / "first"
    compiled, results = call(built, cache, "smooth", "blur", "relax")
    return cache, compiled, results


@pytest.fixture
def cache(first, tmp_path):
    """A cache with the machine's walker, and no kernel."""
    shutil.copytree(first[0], tmp_path / "cache")
    return tmp_path / "cache"


@pytest.fixture
def site(built, tmp_path):
    """An installation that may be changed."""
    shutil.copytree(built / "site", tmp_path / "site")
    return tmp_path / "site"


def kernels(site):
    return sorted((site / "smoothing" / "_orion").glob("*.kernel"))


def tiles(compiled):
    return [name for name in compiled if name.startswith("orion_kernel") and name.endswith(".tile")]


EXPECTED_SMOOTH = float(sum(range(1, 999)))
IMAGE = float(sum(number % 7 for number in range(640_000)))


def test_first_calls_from_the_wheel_compile_the_walker_alone(first, built):
    cache, compiled, results = first
    assert "orion_walker" in "".join(compiled)
    assert not tiles(compiled)
    assert not [*cache.rglob("orion_kernel*.nbc")]
    assert results[0][0] == EXPECTED_SMOOTH
    again, same = call(built, cache, "smooth", "blur", "relax")
    assert (again, same) == ([], results)


def test_without_them_the_same_is_compiled_and_computed(first, built, cache):
    compiled, results = call(built, cache, "smooth", "blur", "relax", ORION_SHIPPED="0")
    assert len(tiles(compiled)) == 3
    assert results == first[2]
    again, _ = call(built, cache, "smooth", "blur", "relax")  # what the machine has compiled is found first
    assert again == []


def changed(site, **fields):
    """Change what all files say of their kernels."""
    for path in kernels(site):
        head, code = read_shipped(path)
        path.unlink()
        write_shipped(path.parent, path.name.split("-")[0], replace(head, **fields), code)


def other_cpu():
    return next(name for name in ("skylake-avx512", "znver3") if name != llvm.get_host_cpu_name())


def test_for_another_cpu_it_is_compiled(site, built, cache):
    changed(site, cpu=other_cpu(), needs=LEVELS["x86-64"])
    compiled, results = call(built, cache, "smooth", site=site)
    assert len(tiles(compiled)) == 1
    assert results[0][0] == EXPECTED_SMOOTH
    assert {misfit(path) for path in kernels(site)} == {f"for the CPU {other_cpu()}"}


def test_for_a_cpu_with_more_features_it_is_compiled(site, built, cache):
    changed(site, needs=(*LEVELS[GENERIC], "a feature of tomorrow"))
    assert len(tiles(call(built, cache, "smooth", site=site)[0])) == 1


def test_where_settings_choose_the_cpu_it_is_compiled(built, tmp_path):
    compiled, results = call(built, tmp_path / "c", "smooth", NUMBA_CPU_NAME="haswell", NUMBA_CPU_FEATURES="+64bit")
    assert len(tiles(compiled)) == 1
    assert results[0][0] == EXPECTED_SMOOTH


@pytest.mark.parametrize("name", ["Python", "Orion", "Numba"])
def test_of_another_version_it_is_compiled(site, built, cache, name):
    for path in kernels(site):
        head, code = read_shipped(path)
        write_shipped(path.parent, path.name.split("-")[0], replace(head, versions=head.versions | {name: "9"}), code)
    compiled, results = call(built, cache, "smooth", site=site)
    assert len(tiles(compiled)) == 1
    assert results[0][0] == EXPECTED_SMOOTH
    assert {misfit(path) for path in kernels(site)} == {f"made with {name} 9"}


def test_with_another_orion_it_is_compiled(built, cache):
    compiled, results = call(built, cache, "smooth", version=True)
    assert len(tiles(compiled)) == 1
    assert results[0][0] == EXPECTED_SMOOTH


def test_an_edited_loop_is_compiled(site, built, cache):
    file = site / "smoothing" / "filters.py"
    file.write_text(file.read_text().replace("0.5 * (x", "0.25 * (x"))
    compiled, results = call(built, cache, "smooth", site=site)
    assert len(tiles(compiled)) == 1
    assert results[0][0] == EXPECTED_SMOOTH / 2


def test_a_loop_that_has_moved_is_not(site, built, cache):
    file = site / "smoothing" / "filters.py"
    text = file.read_text().replace("(x, out)", "(values, out)").replace("x[", "values[")
    file.write_text("# A line more.\n" + text.replace("x.shape", "values.shape"))
    assert call(built, cache, "smooth", site=site) == ([], [[EXPECTED_SMOOTH, 0.0, IMAGE]])


DAMAGE = {
    "one bit": lambda data: bytes((*data[:-100], data[-100] ^ 1, *data[-99:])),
    "a bit of the head": lambda data: bytes((*data[:40], data[40] ^ 1, *data[41:])),
    "cut off": lambda data: data[: len(data) // 2],
    "empty": lambda data: b"",
    "something else": lambda data: b"hello\n" * 1000,
}


def test_what_is_damaged_is_compiled(site, built, cache):
    for how in DAMAGE.values():
        for path in kernels(site):
            original = path.read_bytes()
            path.write_bytes(how(original))
            assert misfit(path) == "damaged"
            path.write_bytes(original)
    for path, how in zip(kernels(site), [*DAMAGE.values(), DAMAGE["cut off"]], strict=True):
        path.write_bytes(how(path.read_bytes()))
    compiled, results = call(built, cache, "smooth", site=site)
    assert len(tiles(compiled)) == 1
    assert results[0][0] == EXPECTED_SMOOTH


def test_of_two_files_the_sound_one_is_loaded(site, built, cache):
    """The one for this CPU comes before that for all; where it is damaged, that is loaded."""
    for path in kernels(site):
        if llvm.get_host_cpu_name() in path.name:
            path.write_bytes(DAMAGE["one bit"](path.read_bytes()))
    assert call(built, cache, "smooth", site=site)[0] == []


def test_code_that_is_none_is_compiled(site, built, cache):
    """With the right checksum: as from whoever wrote the package."""
    for path in kernels(site):
        head, _ = read_shipped(path)
        write_shipped(path.parent, path.name.split("-")[0], head, b"no pickle")
    assert len(tiles(call(built, cache, "smooth", site=site)[0])) == 1


def test_two_packages_that_ship_the_same_loop(first, site, built, cache):
    shutil.copytree(site / "smoothing", site / "soothing")
    file = site / "soothing" / "__init__.py"
    file.write_text(file.read_text().replace("smoothing", "soothing"))
    compiled, results = call(built, cache, "smooth", "blur", "relax", site=site, packages="smoothing,soothing")
    assert compiled == []
    assert results == [first[2][0]] * 2


def test_a_package_in_a_package_uses_the_folder_around_it(site, built, cache):
    inner = site / "smoothing" / "inner"
    inner.mkdir()
    (inner / "__init__.py").write_text("")
    (site / "smoothing" / "filters.py").rename(inner / "filters.py")
    file = site / "smoothing" / "__init__.py"
    file.write_text(file.read_text().replace("smoothing.filters", "smoothing.inner.filters"))
    assert call(built, cache, "smooth", site=site)[0] == []


def test_doctor_says_what_a_package_ships(site, tmp_path):
    paths = {"PYTHONPATH": f"{site}{os.pathsep}{ROOT}", "ORION_CACHE": str(tmp_path / "none")}
    path = kernels(site)[0]
    path.write_bytes(b"")
    done = run([sys.executable, "-m", "orion", "doctor", "--json"], cwd=tmp_path, **paths)
    (found,) = (one for one in json.loads(done.stdout)["shipped"] if one["folder"].startswith(str(site)))
    assert (found["kernels"], found["fitting"], found["others"]) == (6, 5, {"damaged": 1})
    done = run([sys.executable, "-m", "orion", "doctor"], cwd=tmp_path, ORION_SHIPPED="0", **paths)
    assert "0 of 6 kernels can be loaded; 6 left out by ORION_SHIPPED=0" in " ".join(done.stdout.split())


def test_a_second_build_leaves_nothing_of_the_first(built, tmp_path):
    project = tmp_path / "project"
    shutil.copytree(built / "project", project)
    folder = project / "src" / "smoothing" / "_orion"
    head, code = read_shipped(next(folder.glob("*.kernel")))
    other = write_shipped(
        folder, "orion_shipped_other", replace(head, versions=head.versions | {"Python": "3.99"}), code
    )
    code, out, err = build(project)
    assert code == 1
    assert "`filters.relax`: `image` has no annotation; give `signatures=[...]`, or call it under --record" in err
    assert "2 kernels" in out
    assert len([*folder.iterdir()]) == 3
    assert other.exists()  # of another Python: a wheel may have kernels for several


def test_a_cpu_that_is_named_is_built_for(built):
    """Its code needs no more than is known of it."""
    cpu = cpu_of("znver4")
    assert cpu.needs == LEVELS["x86-64-v4"]
    assert cpu_of("haswell").needs == LEVELS["x86-64-v3"]
    assert "-sha" in cpu.features
    assert cpu_of("host").fits(this_cpu())
    assert not replace(this_cpu(), name="another").fits(this_cpu())
    assert any(llvm.get_host_cpu_name() in path.name for path in kernels(built / "site"))
