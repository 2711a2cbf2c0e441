"""Perf maps: with `ORION_PERF=1` in the environment Linux's `perf` names compiled kernels by the user's functions.

    ORION_PERF=1 perf record -g python train.py
    perf report

Machine code that a process makes has no file in which `perf` could look up names. It reads `/tmp/perf-PID.map` instead,
a line for each function: the address and the size in hexadecimal digits, and the name. Orion appends a line when a
kernel is compiled, or taken from the cache:

- `orion::smooth:/home/me/train.py:8`: a loop of `smooth`, the first line of which is 8; or the function that runs as it
  is, without a plan, and begins there. The line is that of the loop: perf maps have no lines inside of functions.
- `orion::walk`, `orion::follow`: what waits for other workers, runs their tiles and the serial loops around them.

The map is of one process: a forked one writes its own, and so do Ray's workers if they have the variable. It is written
for this user alone, never through a link, and stays when the process ends: `perf report` reads it then. Python has
names for its own functions in the same file (`python -X perf`, from 3.12 on).
"""

from __future__ import annotations

import contextlib
import os
import struct
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from orion.dataclass import dataclass

SWITCH = "ORION_PERF"
FOLDER = Path("/tmp")
"""Where `perf` looks, whatever TMPDIR says."""

_locks = [threading.Lock()]
"""The lock of this process: the last one. A forked one begins with a new one, as a thread may have held the other."""

_lines: list[str] = []


def is_on() -> bool:
    """Whether maps are wanted."""
    wanted = os.environ.get(SWITCH, "").strip().lower() not in ("", "0", "false", "no", "off")
    return wanted and sys.platform == "linux"


def name_for_perf(dispatcher: Any, name: str) -> None:
    """Have `perf` call the machine code of a compiled function by that name, where maps are wanted."""
    if not is_on():
        return
    found = [line for one in dispatcher.overloads.values() for line in _lines_of(dispatcher, one, name)]
    with _locks[-1]:
        if not _lines:
            os.register_at_fork(after_in_child=_write_anew)
        new = [line for line in found if line not in _lines]
        _lines.extend(new)
        appended(_path(), new)


def _write_anew() -> None:
    """Write the map of a process that was forked off."""
    _locks.append(threading.Lock())
    if is_on():
        appended(_path(), _lines)


def _path() -> Path:
    return FOLDER / f"perf-{os.getpid()}.map"


def appended(path: Path, lines: Sequence[str]) -> bool:
    """Append lines to a map of this user's; where that cannot be done, say so, and return False."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags, 0o600)
        with os.fdopen(descriptor, "a", encoding="utf-8") as file:
            if os.fstat(descriptor).st_uid != os.geteuid():
                raise PermissionError(1, "it belongs to another user")
            file.write("".join(f"{line}\n" for line in lines))
    except OSError as error:
        with contextlib.suppress(Exception):
            sys.stderr.write(f"orion: {path} is not written: {error.strerror or error}\n")
        return False
    return True


# ------------------------------------------------------------ machine code


@dataclass(frozen=True, slots=True)
class Code:
    """A function in an object file: its symbol, its section, its place in that, and its size in bytes."""

    symbol: str
    section: int
    offset: int
    size: int


def _lines_of(dispatcher: Any, overload: Any, name: str) -> list[str]:
    """The lines for all functions of a compiled one. What else Numba has put into its object file, such as helpers,
    goes by the same name: it is at the same distance from the function as in the object file."""
    library, descriptor = overload.library, overload.fndesc
    own = descriptor.llvm_cpython_wrapper_name, descriptor.llvm_func_name  # kernels have an entry alone, in its place
    try:
        functions = functions_of(_object_file(dispatcher, overload))
        first = next(one for one in functions if one.symbol in own)
        address = library.get_pointer_to_function(first.symbol)
    except Exception:  # without an object file nothing is known of sizes
        return []
    begin = address - first.offset
    return [f"{begin + one.offset:x} {one.size:x} {name}" for one in functions if one.section == first.section]


def _object_file(dispatcher: Any, overload: Any) -> bytes:
    """The object file of a compiled function. One from the cache is read there again, since LLVM has taken it."""
    if overload.library._compiled_object is not None:
        return bytes(overload.library._compiled_object)
    kept = dispatcher._cache
    payload = kept._cache_file.load(kept._index_key(overload.signature.args, dispatcher.targetctx.codegen()))
    _, _, (data, _) = payload[0]
    return bytes(data)


ELF = struct.Struct("<16sHHIQQQIHHHHHH")
SECTION = struct.Struct("<IIQQQQIIQQ")
SYMBOL = struct.Struct("<IBBHQQ")
SYMBOLS, FUNCTION = 2, 2
"""The types of a table of symbols, and of a function among them."""


def functions_of(data: bytes) -> list[Code]:
    """Return the functions of an ELF object file of 64 bits; none of anything else."""
    try:
        head = ELF.unpack_from(data)
        if head[0][:6] != b"\x7fELF\x02\x01":
            return []
        sections = [SECTION.unpack_from(data, head[6] + k * head[11]) for k in range(head[12])]
        return [code for one in sections if one[1] == SYMBOLS for code in _functions_in(data, one, sections[one[6]])]
    except (struct.error, IndexError):
        return []


def _functions_in(data: bytes, table: tuple[int, ...], names: tuple[int, ...]) -> list[Code]:
    found = []
    for at in range(table[4], table[4] + table[5], SYMBOL.size):
        name, info, _, section, value, size = SYMBOL.unpack_from(data, at)
        if info & 15 == FUNCTION and section and size:
            begin = names[4] + name
            symbol = data[begin : data.index(b"\0", begin)].decode(errors="replace")
            found.append(Code(symbol, section, value, size))
    return found
