"""A folder whose files are in the memory of another process, behind a link of so many bytes per second (FUSE; root).

Each request takes the latency of the link and its bytes over the bandwidth, one after the other: the process sleeps as
long. A request that comes at most `QUEUED` seconds after the one before it was done counts as having waited for that:
so on a busy machine, where processes wait for cores between any two requests, the link is as fast as on an idle one.
What comes after an fsync has waited for nothing.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import signal
import stat
import struct
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

LIBC = ctypes.CDLL(None, use_errno=True)
BLOCK = 128 * 1024
QUEUED = 0.01
HEADER, COUNTS = struct.Struct("<IIQQIIIHH"), struct.Struct("<QQ")
FORGET, MKDIR, READ, FSYNC, BATCH_FORGET = 2, 9, 15, 20, 42
SIZE, BIG_WRITES, WRITEBACK = 1 << 3, 1 << 5, 1 << 16
"""Of SETATTR that the size changes; what is asked for by INIT."""


class Server:
    """The files: contents by number, 1 is the folder itself; `names` are those in each folder. The link is `free` from
    then on; `counts` are the bytes that were read and written over it."""

    def __init__(self, device: int, bandwidth: float, latency: float, counts: mmap.mmap) -> None:
        self.device, self.bandwidth, self.latency, self.counts = device, bandwidth, latency, counts
        self.free = 0.0
        self.contents: dict[int, bytearray | None] = {1: None}
        self.names: dict[int, dict[str, int]] = {1: {}}

    def serve(self) -> None:
        """Answer requests until the folder is unmounted."""
        while True:
            try:
                request = os.read(self.device, BLOCK + 65536)
            except OSError as error:
                if error.errno in (errno.EINTR, errno.ENOENT):
                    continue
                return
            _, operation, unique, node, *_ = HEADER.unpack_from(request)
            if operation == FSYNC:
                self.free = 0.0
            if operation in (FORGET, BATCH_FORGET):
                continue
            begun = time.perf_counter()
            code, answer, moved = self.answer(operation, node, request[HEADER.size :])
            if moved:
                self.count(operation, moved)
                begun = self.free if begun - self.free < QUEUED else begun
                self.free = begun + self.latency + moved / self.bandwidth
                time.sleep(max(0.0, self.free - time.perf_counter()))
            os.write(self.device, struct.pack("<IiQ", 16 + len(answer), -code, unique) + answer)

    def count(self, operation: int, moved: int) -> None:
        read, written = COUNTS.unpack_from(self.counts)
        is_read = operation == READ
        COUNTS.pack_into(self.counts, 0, read + moved * is_read, written + moved * (not is_read))

    def answer(self, operation: int, node: int, body: bytes) -> tuple[int, bytes, int]:
        """The error number or 0, what is answered, and the bytes that go over the link."""
        match operation:
            case 26:  # INIT
                asked = 7, 31, BLOCK, BIG_WRITES | WRITEBACK, 12, 10, BLOCK, 1, 32, 0, 0
                return 0, struct.pack("<IIIIHHIIHHI28x", *asked), 0
            case 1:  # LOOKUP
                found = self.names[node].get(_text(body))
                return (0, self.entry(found), 0) if found is not None else (errno.ENOENT, b"", 0)
            case 3:  # GETATTR
                return 0, struct.pack("<QII", 0, 0, 0) + self.attributes(node), 0
            case 4:  # SETATTR
                return self.changed(node, body)
            case 9 | 35:  # MKDIR, CREATE
                return self.made(operation, node, body)
            case 10 | 11:  # UNLINK, RMDIR
                self.removed(node, _text(body))
                return 0, b"", 0
            case 14 | 27:  # OPEN, OPENDIR
                return 0, struct.pack("<QII", 0, 0, 0), 0
            case 15:  # READ
                _, at, size = struct.unpack_from("<QQI", body)
                contents = self.contents[node]
                assert contents is not None
                found_bytes = bytes(contents[at : at + size])
                return 0, found_bytes, len(found_bytes)
            case 16:  # WRITE
                return self.written(node, body)
            case 28:  # READDIR
                return 0, self.listed(node, body), 0
            case 18 | 20 | 25 | 29:  # RELEASE, FSYNC, FLUSH, RELEASEDIR
                return 0, b"", 0
            case _:
                return errno.ENOSYS, b"", 0

    def attributes(self, node: int) -> bytes:
        contents = self.contents[node]
        mode = stat.S_IFDIR | 0o700 if contents is None else stat.S_IFREG | 0o600
        size = 0 if contents is None else len(contents)
        return struct.pack("<6Q10I", node, size, -(-size // 512), 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)

    def entry(self, node: int) -> bytes:
        return struct.pack("<QQQQII", node, 0, 0, 0, 0, 0) + self.attributes(node)

    def changed(self, node: int, body: bytes) -> tuple[int, bytes, int]:
        valid, _, _, size = struct.unpack_from("<IIQQ", body)
        contents = self.contents[node]
        if valid & SIZE and contents is not None:
            del contents[size:]
            contents.extend(bytes(size - len(contents)))
        return 0, struct.pack("<QII", 0, 0, 0) + self.attributes(node), 0

    def made(self, operation: int, node: int, body: bytes) -> tuple[int, bytes, int]:
        number = max(self.contents) + 1
        self.contents[number] = None if operation == MKDIR else bytearray()
        self.names[number] = {}
        self.names[node][_text(body[8 if operation == MKDIR else 16 :])] = number
        opened = b"" if operation == MKDIR else struct.pack("<QII", 0, 0, 0)
        return 0, self.entry(number) + opened, 0

    def removed(self, node: int, name: str) -> None:
        number = self.names[node].pop(name)
        contents = self.contents[number]
        if contents is not None:
            contents.clear()

    def written(self, node: int, body: bytes) -> tuple[int, bytes, int]:
        _, at, size = struct.unpack_from("<QQI", body)
        contents = self.contents[node]
        assert contents is not None
        if len(contents) < at + size:
            contents.extend(bytes(at + size - len(contents)))
        contents[at : at + size] = body[40 : 40 + size]
        return 0, struct.pack("<II", size, 0), size

    def listed(self, node: int, body: bytes) -> bytes:
        _, first = struct.unpack_from("<QQ", body)
        found = b""
        for at, (name, number) in enumerate([*self.names[node].items()][first:], first + 1):
            text = name.encode()
            kind = stat.S_IFDIR if self.contents[number] is None else stat.S_IFREG
            entry = struct.pack("<QQII", number, at, len(text), kind >> 12) + text
            found += entry + bytes(-len(entry) % 8)
        return found[:4096]


def _text(body: bytes) -> str:
    return body.split(b"\0", 1)[0].decode()


@dataclass(frozen=True, slots=True)
class FarFolder:
    """A folder, and the bytes that its link has carried."""

    path: Path
    counts: mmap.mmap

    def moved(self) -> tuple[int, int]:
        """The bytes that were read and written since it was made."""
        read, written = COUNTS.unpack_from(self.counts)
        return read, written


@contextmanager
def far_folder(bandwidth: float, latency: float) -> Iterator[FarFolder]:
    """Such a folder, of `bandwidth` bytes per second and `latency` seconds per request."""
    with tempfile.TemporaryDirectory(prefix="orion-far-") as made:
        device = os.open("/dev/fuse", os.O_RDWR)
        options = f"fd={device},rootmode=40000,user_id=0,group_id=0,max_read={BLOCK}".encode()
        if LIBC.mount(b"orion", made.encode(), b"fuse", 6, options):
            raise OSError(ctypes.get_errno(), "a folder by FUSE cannot be mounted")
        counts = mmap.mmap(-1, COUNTS.size)  # shared with the other process
        process = os.fork()
        if not process:
            try:
                os.nice(-15)
                Server(device, bandwidth, latency, counts).serve()
            finally:
                os._exit(0)
        os.close(device)
        try:
            yield FarFolder(Path(made), counts)
        finally:
            LIBC.umount2(made.encode(), 2)
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
