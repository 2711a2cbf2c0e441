"""The number of cores: the smaller of the CPU affinity and the CPU quota of the control groups."""

import ast
import os
from pathlib import Path

import pytest

from orion import cores as cores_module
from orion.cores import cores, cpu_quota

PACKAGE = Path(cores_module.__file__).parent
V1, V2 = "cgroup cgroup rw,cpu,cpuacct", "cgroup2 cgroup2 rw"


class Host:
    """A folder like a process's in `/proc`, and mounted control groups."""

    def __init__(self, folder):
        self.folder, self.process = folder, folder / "self"
        self.process.mkdir()

    def quotas_v2(self, quotas, mounted="unified"):
        for group, text in quotas.items():
            self._write(mounted, group, {"cpu.max": text})

    def quotas_v1(self, quotas, mounted="cpu"):
        for group, text in quotas.items():
            quota, period = text.split(" ")
            self._write(mounted, group, {"cpu.cfs_quota_us": quota, "cpu.cfs_period_us": period})

    def of(self, cgroup, *mounts):
        """The quota of a process in some groups, with (mount, root, kind) mounted."""
        lines = [
            f"3{number} 31 0:3{number} {root} {str(self.folder / mounted).replace(' ', chr(92) + '040')} rw - {kind}"
            for number, (mounted, root, kind) in enumerate(mounts)
        ]
        (self.process / "cgroup").write_text(cgroup)
        (self.process / "mountinfo").write_text("\n".join(["21 1 8:1 / / rw shared:1 - ext4 /dev/a rw", *lines, ""]))
        return cpu_quota(self.process)

    def _write(self, mounted, group, files):
        folder = self.folder / mounted / group
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / name).write_text(text + "\n")


@pytest.fixture
def host(tmp_path):
    return Host(tmp_path)


NESTED = {
    "one group": ({"job": "200000 100000"}, 2.0),
    "another period": ({"job": "25000 10000"}, 2.5),
    "less than a core": ({"job": "50000 100000"}, 0.5),
    "none": ({"job": "{} 100000"}, None),
    "a smaller one outside": ({"": "300000 100000", "job": "{} 100000", "job/step": "400000 100000"}, 3.0),
    "a smaller one inside": ({"": "{} 100000", "job": "300000 100000", "job/step": "100000 100000"}, 1.0),
    "only the root's": ({"": "600000 100000", "job": "{} 100000"}, 6.0),
    "another group's": ({"job": "{} 100000", "other": "100000 100000"}, None),
}
PATHS = {name: "/job/step" if "job/step" in quotas else "/job" for name, (quotas, _) in NESTED.items()}


@pytest.mark.parametrize("name", NESTED)
def test_the_smallest_quota_up_to_the_root_counts_in_version_2(host, name):
    quotas, expected = NESTED[name]
    host.quotas_v2({group: text.format("max") for group, text in quotas.items()})
    assert host.of(f"0::{PATHS[name]}\n", ("unified", "/", V2)) == expected


@pytest.mark.parametrize("name", NESTED)
def test_the_smallest_quota_up_to_the_root_counts_in_version_1(host, name):
    quotas, expected = NESTED[name]
    host.quotas_v1({group: text.format("-1") for group, text in quotas.items()})
    groups = f"4:memory:/elsewhere\n3:cpu,cpuacct:{PATHS[name]}\n0::/elsewhere\n"
    assert host.of(groups, ("cpu", "/", V1), ("unified", "/", V2)) == expected


def test_both_versions_count(host):
    host.quotas_v1({"job": "300000 100000"})
    host.quotas_v2({"job": "200000 100000"})
    assert host.of("3:cpu:/job\n0::/job\n", ("cpu", "/", V1), ("unified", "/", V2)) == 2.0
    assert host.of("3:cpu:/job\n0::/other\n", ("cpu", "/", V1), ("unified", "/", V2)) == 3.0


@pytest.mark.parametrize(
    ("path", "root"),
    [("/docker/7", "/docker/7"), ("/", "/"), ("/../7", "/"), ("/docker/8", "/docker/7"), ("/a/../../7", "/a")],
)
def test_a_container_sees_its_own_group_at_the_root_of_its_mount(host, path, root):
    host.quotas_v2({"": "150000 100000"})
    assert host.of(f"0::{path}\n", ("unified", root, V2)) == 1.5


def test_a_group_below_the_root_of_the_mount(host):
    host.quotas_v1({"": "400000 100000", "step": "200000 100000"})
    assert host.of("3:cpu:/docker/7/step\n", ("cpu", "/docker/7", V1)) == 2.0


def test_a_folder_with_a_blank_and_a_group_with_a_colon(host):
    host.quotas_v2({"job:1": "200000 100000"}, mounted="my groups")
    assert host.of("0::/job:1\n", ("my groups", "/", V2)) == 2.0


@pytest.mark.parametrize(
    "text", ["", "max", "100000", "x 100000", "0 100000", "100000 0", "-5 100000", "1e5 100000", "²0 100000", "1 2 3"]
)
def test_what_is_no_quota_is_none(host, text):
    host.quotas_v2({"job": text})
    assert host.of("0::/job\n", ("unified", "/", V2)) is None


def test_what_cannot_be_read_is_no_quota(host):
    assert cpu_quota(host.folder / "nowhere") is None
    assert host.of("", ("unified", "/", V2)) is None
    assert host.of("\nx\n::\n0::/job\n") is None
    assert host.of("0::/job\n", ("unified", "/", V2), ("cpu", "/", V1)) is None
    (host.folder / "unified" / "job" / "cpu.max").mkdir(parents=True)
    (host.folder / "unified" / "cpu.max").write_bytes(b"\xff\xfe 100000")
    assert host.of("0::/job\n", ("unified", "/", V2)) is None
    (host.process / "mountinfo").write_text("1 2 3\n - \n\n4 5 6 / /sys rw - cgroup2\n")
    assert cpu_quota(host.process) is None


@pytest.mark.parametrize(
    ("affinity", "quota", "expected"),
    [(64, 2.0, 2), (64, 2.1, 3), (64, 0.5, 1), (64, 0.001, 1), (4, 8.0, 4), (4, None, 4), (1, 0.25, 1)],
)
def test_the_smaller_of_affinity_and_quota(monkeypatch, affinity, quota, expected):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(affinity)))
    monkeypatch.setattr(cores_module, "cpu_quota", lambda: quota)
    assert cores() == expected


def test_a_system_without_affinities(monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    monkeypatch.setattr(cores_module, "cpu_quota", lambda: 3.0)
    assert cores() == 3


def test_a_session_has_a_worker_for_each_core_of_the_quota(monkeypatch):
    import orion
    from orion.runtime.session import current_session

    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(64)))
    monkeypatch.setattr(cores_module, "cpu_quota", lambda: 1.5)
    with orion.session():
        assert current_session().workers == 2


def test_nothing_else_asks_the_system_for_the_number_of_cores():
    names = {"cpu_count", "process_cpu_count", "sched_getaffinity"}
    asking = {
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if (isinstance(node, ast.Attribute) and node.attr in names) or (isinstance(node, ast.Name) and node.id in names)
    }
    assert asking == {"cores.py"}
