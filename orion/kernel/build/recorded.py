"""Generated kernels noted for `orion build`: with `ORION_RECORD=folder` each that a process calls for is put there."""

from __future__ import annotations

import contextlib
import os
import pickle
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

from orion.kernel.build.cache import write_whole
from orion.kernel.calling import KernelSource

SWITCH = "ORION_RECORD"
SUFFIX = ".record"


def record(source: KernelSource) -> None:
    """Note a kernel, where that is wanted; a folder that cannot be written to is passed over."""
    folder = os.environ.get(SWITCH)
    if folder:
        with contextlib.suppress(OSError):
            write_record(Path(folder), source)


def write_record(folder: Path, source: KernelSource) -> None:
    """Write the file of a kernel."""
    data = pickle.dumps(source)
    write_whole(folder / f"{sha256(data).hexdigest()[:24]}{SUFFIX}", data)


def records_in(folder: Path) -> Iterator[KernelSource]:
    """Yield the kernels that were noted."""
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        source = pickle.loads(path.read_bytes())
        assert isinstance(source, KernelSource)
        yield source
