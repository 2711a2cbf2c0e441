"""Files of machine code with a checksum: what a bad disk, a lost page or a copy that broke off has changed is compiled
anew. LLVM ends the process over such a file, and would do so at every start."""

from __future__ import annotations

import pickle
from hashlib import sha256
from pathlib import Path
from typing import Any

from numba.core.caching import IndexDataCacheFile

from orion.kernel.build.machine_code import set_up_compiler

DIGEST_BYTES = sha256().digest_size


class CheckedFiles(IndexDataCacheFile):  # type: ignore[misc]
    """Numba's index and data files of a function, each data file with the SHA-256 of the rest before it. A damaged one
    is taken for one that is not there, and is then written again."""

    def _load_index(self) -> dict[Any, str]:
        try:
            found: dict[Any, str] = super()._load_index()
        except OSError:
            raise
        except Exception:  # what unpickling damaged bytes may end in
            return {}
        return found

    def _load_data(self, name: str) -> Any:
        return unpickled(checked(Path(self._data_path(name))))

    def _save_data(self, name: str, data: Any) -> None:
        with self._open_for_write(self._data_path(name)) as file:
            file.write(with_digest(self._dump(data)))


def with_digest(data: bytes) -> bytes:
    """Return the data with its checksum before it."""
    return sha256(data).digest() + data


def checked(path: Path) -> bytes:
    """Return what a file has after its checksum. OSError where it is damaged, or cannot be read."""
    data = path.read_bytes()
    if sha256(data[DIGEST_BYTES:]).digest() != data[:DIGEST_BYTES]:
        raise OSError(f"{path} is damaged")
    return data[DIGEST_BYTES:]


def unpickled(data: bytes) -> Any:
    """Return compiled code from its bytes, not loaded yet."""
    if b"numba.np.arraymath" in data:  # a module that is imported as it is unpickled
        set_up_compiler()
    return pickle.loads(data)


def keep_checked(dispatcher: Any) -> Any:
    """The compiled function, whose machine code is kept in such files."""
    kept = dispatcher._cache
    files = kept._cache_file
    name = files._index_name.removesuffix(".nbi")
    kept._cache_file = CheckedFiles(kept.cache_path, name, files._source_stamp)
    return dispatcher
