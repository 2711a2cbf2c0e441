"""The layers of the design, held by a table: a file imports only from its own stage or an earlier one."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "orion"

# From first to last. A file may import from its own line and from those above it.
LAYERS = (
    ("orion.dataclass", "orion.printable", "orion.source"),
    ("orion.cores", "orion.errors", "orion.reasons", "orion.tracebacks"),
    ("orion.extras",),
    ("orion.aside", "orion.forks", "orion.own_threads", "orion.arrays", "orion.keyed_random"),
    ("orion.ir",),
    ("orion.typing",),
    ("orion.frontend",),
    ("orion.passes",),
    ("orion.sets",),
    ("orion.dependence",),
    ("orion.cost",),
    ("orion.analysis",),
    ("orion.rewrites",),
    ("orion.plan",),
    ("orion.schedule",),
    ("orion.verify",),
    ("orion.kernel",),
    ("orion.runtime",),
    ("orion.inspect",),
    (
        "orion.again",
        "orion.checkpointing",
        "orion.compared",
        "orion.comparing",
        "orion.debugging",
        "orion.last_run",
        "orion.profiling",
        "orion.planned",
        "orion.estimate",
        "orion.measured",
        "orion.measuring",
        "orion.predicted_times",
        "orion.simulate",
        "orion.kinds",
        "orion.known",
        "orion.pipeline",
        "orion.inspecting",
        "orion.preparations",
        "orion.prepare",
        "orion.prepared_call",
        "orion.replayed",
        "orion.reporting",
        "orion.methods",
        "orion.other_runs",
        "orion.unanalysed",
    ),
    ("orion.api",),
    ("orion", "orion.__main__", "orion.cli"),
)
ONLY_IN = {
    "numba": "orion.kernel",
    "llvmlite": "orion.kernel",
    "ray": "orion.runtime.ray",
}


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def dotted(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def layer(name: str) -> int:
    """The layer with the longest prefix of `name`."""
    matches = [
        (len(prefix), number)
        for number, prefixes in enumerate(LAYERS)
        for prefix in prefixes
        if name == prefix or name.startswith(prefix + ".")
    ]
    return max(matches)[1]


def imports(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


@pytest.mark.parametrize("path", modules(), ids=dotted)
def test_imports_only_from_its_own_or_an_earlier_layer(path):
    own = layer(dotted(path))
    later = {name for name in imports(path) if name.split(".")[0] == "orion" and layer(name) > own}
    assert not later, f"{dotted(path)} imports from later stages: {sorted(later)}"


@pytest.mark.parametrize("path", modules(), ids=dotted)
def test_heavy_libraries_are_imported_in_one_package_only(path):
    for library, home in ONLY_IN.items():
        uses = any(name.split(".")[0] == library for name in imports(path))
        assert not uses or dotted(path).startswith(home), f"{dotted(path)} imports {library}"


@pytest.mark.parametrize("path", modules(), ids=dotted)
def test_files_are_short(path):
    assert len(path.read_text().splitlines()) <= 500


def test_the_table_names_every_module():
    unnamed = [name for name in map(dotted, modules()) if layer(name) == len(LAYERS) - 1 and not is_on_top(name)]
    assert not unnamed


def is_on_top(name: str) -> bool:
    return name in LAYERS[-1] or name.startswith("orion.cli.")


def test_every_module_is_imported_by_another():
    """Or by generated source, or lazily: then its name is in a text."""
    texts = {path: path.read_text() for path in modules()}
    used = set().union(*map(imports, modules()))
    unused = []
    for name in map(dotted, modules()):
        quoted = (f'"{name}"', f"from {name} ", f"import {name}")
        is_named = name in used or any(word in text for text in texts.values() for word in quoted)
        is_file = (ROOT / name.replace(".", "/")).with_suffix(".py").is_file()
        if is_file and not is_named and layer(name) != len(LAYERS) - 1:
            unused.append(name)
    assert not unused
