"""Hosts on one machine: network namespaces, each with an address and a link of its own, which may be shaped to a rate.

    with hosts(2, 100) as (first, second):              # 100 Mbit/s in each direction
        process = first.start([sys.executable, "-m", "http.server"])

    with cluster(2, 100) as found:                      # a Ray node on each
        found.hosts[0].start([sys.executable, "driver.py", found.address])

Needs root, `ip` and `tc`; `why_not()` says what is missing. Each namespace has one end of a pair of virtual links whose
other end is at a bridge, in a namespace of its own: nothing of it is in the machine's own network, and it is gone with
the namespaces. These, and all processes in them, are ended when the `with` statement is left, however that happens.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PREFIX = "orion"
LINK = "eth0"
HEADER_BYTES = 14 + 20 + 32
"""Of a packet: Ethernet, IPv4, TCP with time stamps."""

FULL_BYTES = 1514 - HEADER_BYTES
"""The contents of a full packet."""

RAY_PORT = 6379
STORE_BYTES = 80 * 1024**2
SETTINGS = (("RAY_USAGE_STATS_ENABLED", "0"), ("RAY_AUTH_MODE", "disabled"), ("RAY_memory_monitor_refresh_ms", "0"))
"""Of Ray, for nodes and drivers alike. Nobody else reaches these namespaces, so that nobody need show a token, which
`ray start` asks for, and drivers whose parent has used Ray. No worker is killed for what others take of the memory."""

START_SECONDS = 60.0
END_SECONDS = 5.0


class HostsError(Exception):
    """A namespace, a link or a node could not be made."""


@dataclass(frozen=True)
class Traffic:
    """What has gone out of a host: bytes with all headers, packets, and how many of these TCP has sent again because
    a queue was full."""

    bytes: int
    packets: int
    again: int

    @property
    def contents(self) -> int:
        """The bytes without the headers of packets, and without what was sent again (all of those taken to be full)."""
        return self.bytes - HEADER_BYTES * self.packets - FULL_BYTES * self.again

    def since(self, before: Traffic) -> Traffic:
        """What has gone out since then."""
        return Traffic(self.bytes - before.bytes, self.packets - before.packets, self.again - before.again)


@dataclass(frozen=True)
class Host:
    """A namespace with its address. Its processes find a folder of their own in place of the one at `shared`."""

    name: str
    address: str
    own: Path
    shared: Path

    def command(self, command: Sequence[str]) -> list[str]:
        """The command that runs a command on the host."""
        inside = 'mount --bind "$1" "$2" && shift 2 && exec "$@"'
        given = ["sh", "-c", inside, "sh", str(self.own), str(self.shared), *command]
        return ["ip", "netns", "exec", self.name, "env", *(f"{name}={value}" for name, value in SETTINGS), *given]

    def start(self, command: Sequence[str], **options: Any) -> subprocess.Popen[str]:
        """Start a process on the host."""
        return subprocess.Popen(self.command(command), text=True, **options)


def traffic(name: str) -> Traffic:
    """What has gone out of the host with this name since it was made, as `tc -s` and its TCP count it."""
    (queue,) = json.loads(_run("tc", "-n", name, "-s", "-j", "qdisc", "show", "dev", LINK))
    counted = _run("ip", "netns", "exec", name, "cat", "/proc/net/snmp").splitlines()
    heads, values = (line.split() for line in counted if line.startswith("Tcp:"))
    return Traffic(queue["bytes"], queue["packets"], int(values[heads.index("RetransSegs")]))


def why_not() -> str:
    """Why there can be no hosts here; "" where there can."""
    if missing := [name for name in ("ip", "tc") if shutil.which(name) is None]:
        return f"`{missing[0]}` is not installed"
    if os.geteuid() != 0:
        return "only root can make network namespaces"
    try:
        with hosts(1, 100):
            return ""
    except HostsError as error:
        return str(error)


@contextmanager
def hosts(count: int, megabits: int) -> Iterator[tuple[Host, ...]]:
    """So many hosts, whose links carry so many million bits per second in each direction."""
    _take_away_what_is_left()
    prefix = f"{PREFIX}{os.getpid()}"
    folder = Path(tempfile.mkdtemp(prefix=f"{prefix}-"))
    bridge = f"{prefix}-net"
    (folder / "ray").mkdir()
    made = [Host(f"{prefix}-{n}", f"10.77.0.{n + 1}", folder / f"{n}", folder / "ray") for n in range(count)]
    try:
        _run("ip", "netns", "add", bridge)
        _run("ip", "-n", bridge, "link", "add", "bridge", "type", "bridge")
        _run("ip", "-n", bridge, "addr", "add", "10.77.0.254/24", "dev", "bridge")
        _run("ip", "-n", bridge, "link", "set", "bridge", "up")
        for number, host in enumerate(made):
            host.own.mkdir()
            _join(host, bridge, f"port{number}", megabits)
        yield tuple(made)
    finally:
        with _undisturbed():
            _take_away([*(host.name for host in made), bridge])
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Put off Ctrl-C and the like: what is made has to be taken away first."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _take_away(names: Sequence[str]) -> None:
    """End the processes in namespaces, and remove these."""
    _end_processes(names)
    for name in names:
        subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)


def _take_away_what_is_left() -> None:
    """Take away the hosts of processes that were killed before they could."""
    listed = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=False).stdout.split()
    makers = {name: re.fullmatch(rf"{PREFIX}(\d+)-(\d+|net)", name) for name in listed}
    left = {
        name: found[1] for name, found in makers.items() if found is not None and not Path(f"/proc/{found[1]}").exists()
    }
    if left:
        _take_away(list(left))
    for process in set(left.values()):
        for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}{process}-*"):
            shutil.rmtree(folder, ignore_errors=True)


def _join(host: Host, bridge: str, port: str, megabits: int) -> None:
    """Make a host, with a link to the bridge."""
    _run("ip", "netns", "add", host.name)
    _run("ip", "-n", bridge, "link", "add", port, "type", "veth", "peer", "name", LINK, "netns", host.name)
    _run("ip", "-n", bridge, "link", "set", port, "master", "bridge", "up")
    _run("ip", "-n", host.name, "addr", "add", f"{host.address}/24", "dev", LINK)
    for device in ("lo", LINK):
        _run("ip", "-n", host.name, "link", "set", device, "up")
    _run("ip", "-n", host.name, "route", "add", "default", "via", "10.77.0.254")  # Ray looks there for its own address
    burst = max(64, megabits // 4)  # kB: 2 ms at that rate
    shape = ("root", "tbf", "rate", f"{megabits}mbit", "burst", f"{burst}kb", "latency", "100ms")
    _run("tc", "-n", bridge, "qdisc", "add", "dev", port, *shape)
    _run("tc", "-n", host.name, "qdisc", "add", "dev", LINK, *shape)


def _end_processes(names: Sequence[str]) -> None:
    """End all processes in namespaces: none of them is of anybody else."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        end = time.monotonic() + END_SECONDS
        for process in processes_in(names):
            with suppress(ProcessLookupError):
                os.kill(process, number)
        while processes_in(names) and time.monotonic() < end:
            time.sleep(0.05)


def processes_in(names: Sequence[str]) -> list[int]:
    """The processes in namespaces."""
    asked = [
        subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True, check=False) for name in names
    ]
    return [int(number) for one in asked for number in one.stdout.split()]


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise HostsError(f"`{' '.join(command)}` failed: {done.stderr.strip()}")
    return done.stdout


# ---------------------------------------------------------------- Ray on hosts


@dataclass(frozen=True)
class Cluster:
    """Hosts with a Ray node of one CPU each; the head is on the first one."""

    hosts: tuple[Host, ...]
    address: str


@contextmanager
def cluster(count: int, megabits: int) -> Iterator[Cluster]:
    """A Ray cluster on so many hosts, whose links carry so many million bits per second."""
    with hosts(count, megabits) as made:
        address = f"{made[0].address}:{RAY_PORT}"
        started = []
        try:
            for host in made:
                started.append(_start_ray(host, address, is_head=not started))
                _wait_until_there(host, started[-1], address, len(started))
            yield Cluster(made, address)
        finally:
            with _undisturbed():
                _end_processes([host.name for host in made])
                for process in started:
                    process.wait()


def _start_ray(host: Host, address: str, is_head: bool) -> subprocess.Popen[str]:
    where = ["--head", f"--port={RAY_PORT}", "--include-dashboard=false"] if is_head else [f"--address={address}"]
    where += [f"--temp-dir={host.shared}"] if is_head else []
    room = ["--num-cpus=1", f"--object-store-memory={STORE_BYTES}", f"--node-ip-address={host.address}"]
    ray = str(Path(sys.executable).parent / "ray")
    with (host.own / "start.log").open("w") as log:
        return host.start([ray, "start", "--block", *where, *room], stdout=log, stderr=log)


COUNT = """
import sys
from ray._raylet import GcsClient
print(sum(node.state == 0 for node in GcsClient(address=sys.argv[1]).get_all_node_info().values()))
"""


def _wait_until_there(host: Host, process: subprocess.Popen[str], address: str, nodes: int) -> None:
    """Wait until the cluster has so many nodes."""
    end = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < end:
        asked = host.start([sys.executable, "-c", COUNT, address], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        said, _ = asked.communicate()
        if said.strip() == str(nodes):
            return
        time.sleep(0.5)
    raise HostsError(f"Ray did not start on host {host.name}:\n{(host.own / 'start.log').read_text()}")
