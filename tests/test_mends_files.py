"""`orion explain --fix` and `--diff` on files of every kind: nothing is half-written, and what is not mended stays."""

import os
import shutil
import stat
import subprocess
import tempfile
from itertools import pairwise
from pathlib import Path

import pytest

from orion.cli.cli import main
from orion.cli.mends import command, mending
from orion.cli.mends.text import Edit, read_file

HEAD = "import numpy as np\nimport orion\n\n\n@orion.parallel_for\n"
UNTIL = """\
def f(a, limit):
    for i in range(a.shape[0]):
        if a[i] > limit:  # too large
            break
        # the rest
        a[i] = 2.0 * a[i]
"""
UNTIL_FIRST = """\
def f(a, limit):
    first = a.shape[0]
    for i in range(a.shape[0]):
        if a[i] > limit:  # too large
            first = i
            break
    for i in range(a.shape[0]):
        if i < first:
            # the rest
            a[i] = 2.0 * a[i]
"""
UP_TO = """\
def f(a, b, n):
    for i in range(n):
        b[i] = 2.0 * a[i]
        n = 3
"""
TEXT, MENDED = HEAD + UNTIL, HEAD + UNTIL_FIRST
NOBODY = 65534


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def written(data: bytes | str, name="train.py") -> Path:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


FILES = {
    "plain": (TEXT, MENDED, "utf-8"),
    "tabs": (TEXT.replace("    ", "\t"), MENDED.replace("    ", "\t"), "utf-8"),
    "ends of Windows": (TEXT.replace("\n", "\r\n"), MENDED.replace("\n", "\r\n"), "utf-8"),
    "tabs and ends of Windows": (
        TEXT.replace("    ", "\t").replace("\n", "\r\n"), MENDED.replace("    ", "\t").replace("\n", "\r\n"), "utf-8",
    ),
    "a byte order mark": (TEXT, MENDED, "utf-8-sig"),
    "a byte order mark and ends of Windows": (TEXT.replace("\n", "\r\n"), MENDED.replace("\n", "\r\n"), "utf-8-sig"),
    "another encoding": (
        "# -*- coding: latin-1 -*-\n" + TEXT.replace("the rest", "größer"),
        "# -*- coding: latin-1 -*-\n" + MENDED.replace("the rest", "größer"),
        "latin-1",
    ),
    "letters of all kinds": (
        TEXT.replace("the rest", "größer → 日本"), MENDED.replace("the rest", "größer → 日本"), "utf-8",
    ),
    "no end of the last line": (TEXT.rstrip("\n"), MENDED, "utf-8"),
    "other functions around": (
        "X = 1\r\nY = 'a\\tb'  \n\x0c\n" + TEXT + "\n\nclass A:\n  def f(self): return  2 \n   \n",
        "X = 1\r\nY = 'a\\tb'  \n\x0c\n" + MENDED + "\n\nclass A:\n  def f(self): return  2 \n   \n",
        "utf-8",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_all_but_the_mend_stays_byte_for_byte(name):
    text, wanted, encoding = FILES[name]
    path = written(text.encode(encoding))
    assert main(["explain", "train.py", "--fix"]) == 0
    found = path.read_bytes()
    if name == "other functions around":  # with lines that end in two ways: new ones end as the first does
        assert found.replace(b"\r\n", b"\n") == wanted.encode().replace(b"\r\n", b"\n")
        before, _, rest = text.partition("    for i in")
        assert found.startswith(before.encode())
        assert found.endswith(rest.partition("2.0 * a[i]\n")[2].encode())
    else:
        assert found == wanted.encode(encoding)


TOOLS = (("patch", "--binary", "-p1", "-i"), ("git", "apply"))
CASES = [*((name, "train.py") for name in FILES), ("plain", "folder/with blanks/größe.py"), ("plain", "a  b.py")]


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool[0])
@pytest.mark.parametrize(("name", "file"), CASES)
def test_what_is_printed_is_a_patch(name, file, tool, capsysbinary):
    if shutil.which(tool[0]) is None:
        pytest.skip(f"{tool[0]} is not installed")
    text, _, encoding = FILES[name]
    path = written(text.encode(encoding), file)
    assert main(["explain", file, "--diff"]) == 0
    printed = written(capsysbinary.readouterr().out, "printed.patch")
    assert path.read_bytes() == text.encode(encoding)
    subprocess.run([*tool, str(printed)], check=True, capture_output=True)
    applied = path.read_bytes()
    path.write_bytes(text.encode(encoding))
    assert main(["explain", file, "--fix"]) == 0
    assert path.read_bytes() == applied != text.encode(encoding)


def test_a_file_named_by_its_whole_path_is_told_by_its_name_here(folder, capsys):
    written(TEXT)
    main(["explain", str(folder / "train.py"), "--diff"])
    assert "--- a/train.py\n+++ b/train.py\n" in capsys.readouterr().out


# ---------------------------------------------------------------- what cannot be written


def left_alone(folder: Path, before: bytes):
    """Nothing is written, and nothing stays behind."""
    assert (folder / "train.py").read_bytes() == before
    assert sorted(one.name for one in folder.iterdir()) == ["train.py"]


def as_nobody(action) -> int:
    """The status of an action of a user who may write only what all may."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    try:
        if os.geteuid() == 0:
            os.setgid(NOBODY)
            os.setuid(NOBODY)
        action()
    except PermissionError:
        os._exit(13)
    except BaseException:
        os._exit(1)
    os._exit(0)


MODES = [(0o444, 0o777, 13), (0o666, 0o555, 13), (0o666, 0o777, 0)]


@pytest.mark.parametrize(("of_file", "of_folder", "status"), MODES)
def test_permissions_are_kept_to(of_file, of_folder, status, monkeypatch, tmp_path_factory):
    with tempfile.TemporaryDirectory() as place:  # pytest's own folders are closed to other users
        monkeypatch.chdir(place)
        check_permissions(of_file, of_folder, status)
        monkeypatch.chdir(tmp_path_factory.getbasetemp())


def check_permissions(of_file, of_folder, status):
    path = written(TEXT, "inner/train.py")
    path.chmod(of_file)
    path.parent.chmod(of_folder)
    Path.cwd().chmod(0o755)
    file = read_file(path)
    assert as_nobody(lambda: file.write(MENDED)) == status
    path.parent.chmod(0o755)
    assert path.read_text() == (TEXT if status else MENDED)
    assert stat.S_IMODE(path.stat().st_mode) == of_file
    assert [one.name for one in path.parent.iterdir()] == ["train.py"]


def test_a_permission_that_is_missing_is_told(folder, monkeypatch, capsys):
    path = written(TEXT)

    def refused(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(command.ReadFile, "write", refused)
    assert main(["explain", "train.py", "--fix"]) == 2
    assert "orion: cannot write train.py: Permission denied" in capsys.readouterr().err
    left_alone(folder, TEXT.encode())
    assert path.exists()


@pytest.fixture
def full(tmp_path):
    """A folder on a file system that has no room."""
    place = tmp_path / "full"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)]
    if shutil.which("mount") is None or subprocess.run(command, check=False, capture_output=True).returncode:
        pytest.skip("no file system can be mounted")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_a_full_disk(full, monkeypatch, capsys):
    monkeypatch.chdir(full)
    written(TEXT)
    with (full / "filler").open("wb", buffering=0) as filler:
        filler.write(bytes(64 * 1024))  # as much as there is room for
    assert main(["explain", "train.py", "--fix"]) == 2
    monkeypatch.chdir(full.parent)
    (full / "filler").unlink()
    assert "orion: cannot write train.py: No space left on device" in capsys.readouterr().err
    left_alone(full, TEXT.encode())


@pytest.mark.parametrize("broken", ["write", "fsync", "chmod", "replace"])
def test_a_step_that_fails_leaves_the_file(broken, folder, monkeypatch, capsys):
    written(TEXT)

    def fails(*_, **__):
        raise OSError(28, "No space left on device")

    if broken == "write":
        monkeypatch.setattr(os, "fdopen", fails)
    else:
        monkeypatch.setattr(os, broken, fails)
    assert main(["explain", "train.py", "--fix"]) == 2
    assert "No space left on device" in capsys.readouterr().err
    left_alone(folder, TEXT.encode())


def test_an_interrupt_leaves_the_file(folder, monkeypatch):
    written(TEXT)

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        main(["explain", "train.py", "--fix"])
    left_alone(folder, TEXT.encode())


@pytest.mark.parametrize("other", ["somebody saved this\n", ""])
def test_a_file_that_is_saved_between_analysis_and_write(other, folder, monkeypatch, capsys):
    path = written(TEXT)
    monkeypatch.setattr(os, "fsync", lambda _: path.write_text(other))
    assert main(["explain", "train.py", "--fix"]) == 2
    assert "train.py has changed since it was read: nothing is written" in capsys.readouterr().err
    left_alone(folder, other.encode())


def test_a_file_that_is_gone_before_it_is_written(folder, monkeypatch, capsys):
    path = written(TEXT)
    monkeypatch.setattr(command, "_print", lambda *_: path.unlink())
    assert main(["explain", "train.py", "--fix"]) == 2
    assert "cannot write train.py: No such file or directory" in capsys.readouterr().err
    assert [*folder.iterdir()] == []


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o755, 0o2750])
def test_mode_and_owner_stay(mode):
    path = written(TEXT)
    if os.geteuid() == 0:
        os.chown(path, NOBODY, NOBODY)
    path.chmod(mode)
    before = path.stat()
    assert main(["explain", "train.py", "--fix"]) == 0
    after = path.stat()
    assert path.read_text() == MENDED
    assert (after.st_mode, after.st_uid, after.st_gid) == (before.st_mode, before.st_uid, before.st_gid)


def test_links_stay_links(folder):
    written(TEXT, "deep/real.py")
    Path("link.py").symlink_to("deep/real.py")
    Path("train.py").symlink_to(folder / "link.py")
    assert main(["explain", "train.py", "--fix"]) == 0
    assert Path("train.py").is_symlink()
    assert Path("link.py").is_symlink()
    assert Path("deep/real.py").read_text() == MENDED
    assert os.listdir("deep") == ["real.py"]


# ---------------------------------------------------------------- what is mended


def test_a_file_of_a_package_is_loaded_in_it():
    written("", "package/__init__.py")
    written("LIMIT = 3\n", "package/limits.py")
    text = HEAD.replace("import orion\n", "import orion\nfrom .limits import LIMIT\n") + UP_TO.replace("= 3", "= LIMIT")
    path = written(text, "package/train.py")
    assert main(["explain", "package/train.py", "--fix"]) == 0
    assert "n_new = LIMIT" in path.read_text()


def test_of_two_mends_of_the_same_lines_the_first_is_made(capsys):
    both = UNTIL + "        i = i + 1\n"
    path = written(HEAD + both)
    found = []
    real = mending.applied
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mending, "applied", lambda text, edits: found.append(edits) or real(text, edits))
        main(["explain", "train.py", "--fix"])
    for edits in found:
        ends = sorted((one.start, one.end) for one in edits)
        assert all(first[1] <= then[0] for first, then in pairwise(ends))
    compile(path.read_bytes(), "train.py", "exec")


def test_mends_that_overlap_write_nothing(folder, monkeypatch, capsys):
    text = written(TEXT).read_text()
    overlapping = [Edit(0, 20, "x"), Edit(10, 30, "y")]
    monkeypatch.setattr(mending, "KINDS", {"two at once": lambda _: overlapping})
    assert main(["explain", "train.py", "--fix"]) == 0
    assert "no mend is known that makes `f` parallel" in capsys.readouterr().err
    left_alone(folder, text.encode())
