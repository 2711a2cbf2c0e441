"""A decorated function as an object: sent to other processes, an attribute of a class, asked for help and types."""

import copy
import inspect
import json
import os
import pickle
import pydoc
import subprocess
import sys
from importlib.metadata import distributions
from pathlib import Path

import numpy as np
import pytest
from mypy import api as mypy

import orion

ROOT = Path(__file__).resolve().parents[1]


@orion.parallel_for
def add(a, k=2):
    """Adds k to every element."""
    for i in range(a.shape[0]):
        a[i] += k


@orion.parallel_for(ordered=True)
def bare(a):
    for i in range(a.shape[0]):
        a[i] += 1


# ---------------------------------------------------------------- pickles


def test_a_function_of_a_module_goes_by_its_name():
    data = pickle.dumps(add)
    assert pickle.loads(data) is add
    assert len(data) < 100
    assert copy.copy(add) is add
    assert copy.deepcopy({"f": add})["f"] is add


def doubled(x):
    return 2 * x


def test_a_function_inside_another_goes_by_value_with_its_helpers_and_options():
    def half(x):
        return 0.5 * doubled(x)

    @orion.parallel_for(ordered=True)
    def fill(a):
        for i in range(a.shape[0]):
            a[i] = half(a[i])

    data = pickle.dumps(fill)
    again = pickle.loads(data)
    a = np.full(3, 5.0)
    again(a)
    assert a.tolist() == [5.0, 5.0, 5.0]
    assert again is not fill
    assert again.options.ordered is True
    assert pickle.loads(data) is again


SCRIPT = """
import multiprocessing, sys
import numpy as np
import orion

@orion.parallel_for
def square(a):
    for i in range(a.shape[0]):
        a[i] = helper(a[i])

def helper(x):
    return x * x

def work(task):
    function, n = task
    a = np.arange(float(n))
    function(a)
    return a.tolist()

if __name__ == "__main__":
    with multiprocessing.get_context(sys.argv[1]).Pool(2) as pool:
        print(pool.map(work, [(square, 2), (square, 4)]))
"""


@pytest.mark.parametrize("start", ["spawn", "fork", "forkserver"])
def test_process_pools(tmp_path, start):
    (tmp_path / "pools.py").write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, "pools.py", start], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.stdout == "[[0.0, 1.0], [0.0, 1.0, 4.0, 9.0]]\n", done.stderr


SENDER = """
import linecache, pickle, sys
from numba import cloudpickle

CELLS = {
    "/tmp/ipykernel_1/helper.py": "def helper(x):\\n    return x + 1.0\\n",
    "/tmp/ipykernel_1/loop.py": (
        "import orion\\n@orion.parallel_for\\ndef count(a):\\n    for i in range(a.shape[0]):\\n"
        "        a[i] = helper(a[i])\\n\\ndef task(a):\\n    count(a)\\n    return a.tolist()\\n"
    ),
}
for name, text in CELLS.items():  # as a notebook runs its cells
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    exec(compile(text, name, "exec"))
sys.stdout.buffer.write(cloudpickle.dumps(task))
"""
RECEIVER = """
import pickle, sys
import numpy as np
print(pickle.load(sys.stdin.buffer)(np.zeros(3)))
"""


def test_a_function_of_a_notebook_goes_with_its_source():
    sent = subprocess.run([sys.executable, "-c", SENDER], capture_output=True, check=True)
    done = subprocess.run([sys.executable, "-c", RECEIVER], input=sent.stdout, capture_output=True, check=False)
    assert done.stdout == b"[1.0, 1.0, 1.0]\n", done.stderr.decode()


@pytest.mark.all("test_process_pools")
@pytest.mark.ray
def test_ray_tasks():
    import ray

    @orion.parallel_for
    def count(a, n):
        for i in range(a.shape[0]):
            a[i] += n

    def task(n):
        a = np.zeros(3)
        count(a, n)
        return a.tolist()

    ray.init(address="local", num_cpus=1, include_dashboard=False, log_to_driver=False)
    try:
        assert ray.get(ray.remote(task).remote(4)) == [4.0, 4.0, 4.0]
    finally:
        ray.shutdown()


# ---------------------------------------------------------------- in classes


class Model:
    def __init__(self, n):
        self.W = np.zeros(n)
        self.rate = 0.5

    @orion.parallel_for
    def fit(self, data):
        for i in range(self.W.shape[0]):
            self.W[i] += self.rate * data[i]

    @staticmethod
    @orion.parallel_for
    def step(W, rate, data):
        for i in range(W.shape[0]):
            W[i] += rate * data[i]

    @classmethod
    def make(cls):
        return cls(3)


@pytest.mark.parametrize(
    "call",
    [
        lambda model: model.fit(np.ones(3)),
        lambda model: model.fit.plan(np.ones(3)),
        lambda model: model.fit.explain(np.ones(3)),
        lambda model: Model.fit(model, np.ones(3)),
    ],
)
def test_a_method_is_refused_with_what_to_write(call):
    with pytest.raises(orion.ArgumentError) as caught:
        call(Model(3))
    text = str(caught.value)
    assert "`Model.fit` is a method, and a loop cannot look into `self`" in text
    assert "def fit(self, data):" in text
    assert "write `@staticmethod` above `@orion.parallel_for`" in text
    assert "`def fit(W, rate, data)`" in text
    assert "call `self.fit(self.W, self.rate, data)`" in text


def test_what_to_write_runs():
    model = Model.make()
    model.step(model.W, model.rate, np.ones(3))
    Model.step(model.W, model.rate, np.ones(3))
    assert model.W.tolist() == [1.0, 1.0, 1.0]
    assert model.step.plan(model.W, 0.5, np.ones(3)).is_parallel


def test_decorators_in_the_wrong_order():
    with pytest.raises(orion.ArgumentError, match=r"write `@staticmethod` above `@orion\.parallel_for`"):

        class Wrong:
            @orion.parallel_for
            @staticmethod
            def step(W):
                pass


def test_a_function_whose_first_parameter_happens_to_be_called_self_is_no_method():
    @orion.parallel_for
    def fill(self):
        for i in range(self.shape[0]):
            self[i] = 1.0

    a = np.zeros(2)
    fill(a)
    assert a.tolist() == [1.0, 1.0]


# ---------------------------------------------------------------- help


def test_help_shows_the_docstring_and_the_signature():
    plain = pydoc.plain(pydoc.render_doc(add))
    assert "add(a, k=2)" in plain
    assert "Adds k to every element." in plain
    assert "Preparation" not in plain
    assert "bare(a)" in pydoc.plain(pydoc.render_doc(bare))
    assert "class ParallelFunction" not in pydoc.plain(pydoc.render_doc(bare))


def test_inspect_sees_the_function():
    assert str(inspect.signature(add)) == "(a, k=2)"
    assert inspect.getdoc(add) == "Adds k to every element."
    assert inspect.getsource(add).startswith("@orion.parallel_for")
    assert add.__name__ == "add"


def test_dir_has_only_the_interface():
    shown = dir(orion)
    assert set(shown) == {*orion.__all__, "__version__"}
    assert all(getattr(orion, name) is not None for name in shown)


# ---------------------------------------------------------------- types


SNIPPET = """
import numpy as np
from numpy.typing import NDArray

import orion

Array = NDArray[np.float64]

@orion.parallel_for
def total(a: Array, factor: float = 1.0) -> float:
    s = 0.0
    for i in range(a.shape[0]):
        s += factor * a[i]
    return s

@orion.parallel_for(ordered=True, fastmath=False)
def scale(a: Array, factor: float) -> None:
    for i in range(a.shape[0]):
        a[i] *= factor

class Model:
    @staticmethod
    @orion.parallel_for
    def step(W: Array, rate: float) -> None:
        for i in range(W.shape[0]):
            W[i] -= rate * W[i]

a = np.ones(3)
reveal_type(total)
reveal_type(total(a, factor=2.0))
reveal_type(total.plan(a))
reveal_type(total.explain(a))
reveal_type(total.serial)
reveal_type(scale)
Model.step(a, 0.1)
scale(a, "twice")
total(a, factr=2.0)
scale.plan(a)
reveal_type(orion.zeros(3))
"""
KIND = "orion.api.ParallelFunction"
ARRAY = "numpy.ndarray[tuple[Any, ...], numpy.dtype[numpy.float64]]"
REVEALED = [
    f"{KIND}[[a: {ARRAY}, factor: float =], float]", "float", "orion.planned.Plan", "str",
    f"def (a: {ARRAY}, factor: float =) -> float", f"{KIND}[[a: {ARRAY}, factor: float], None]",
    "orion.arrays.dense.DenseArray",
]  # fmt: skip
WRONG = ["arg-type", "call-arg", "call-overload"]


def checked(tmp_path, *options):
    """What mypy reveals, and the kinds of errors it finds, in a user's program somewhere else."""
    path = tmp_path / "user.py"
    path.write_text(SNIPPET)
    out, err, _ = mypy.run([str(path), "--strict", "--cache-dir", str(tmp_path / "cache"), "--config-file=", *options])
    assert not err
    lines = [line.replace("builtins.", "").replace("_typeshed.", "") for line in out.splitlines()]
    revealed = [line.partition('"')[2].rpartition('"')[0] for line in lines if "Revealed type is" in line]
    errors = [line.rpartition("[")[2].rstrip("]") for line in lines if ": error:" in line]
    return revealed, errors, out


def test_types_survive_the_decorator(tmp_path, monkeypatch):
    monkeypatch.setenv("MYPYPATH", str(ROOT))
    revealed, errors, out = checked(tmp_path)
    assert revealed == REVEALED, out
    assert errors == WRONG, out


def is_installed_from_here():
    """Whether this folder is what is installed, as `make` does it; not where a test run borrows an environment. The
    folder's own metadata, which stands first where tests run in it, does not say from where it was installed."""
    found = [one.read_text("direct_url.json") for one in distributions(name="orion-loops")]
    return ROOT.as_uri() in [json.loads(text)["url"] for text in found if text]


@pytest.mark.skipif(not is_installed_from_here(), reason="another folder is installed in this environment")
def test_types_are_found_in_an_editable_install(tmp_path, monkeypatch):
    monkeypatch.delenv("MYPYPATH", raising=False)
    monkeypatch.chdir(tmp_path)
    revealed, errors, out = checked(tmp_path, "--python-executable", sys.executable)
    assert revealed == REVEALED, out
    assert errors == WRONG, out
    assert os.getcwd() != str(ROOT)
