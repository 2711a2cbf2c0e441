"""The connections that Orion's workers on different nodes have, without Ray: between two processes of one machine."""

from __future__ import annotations

from multiprocessing.connection import Connection

import numpy as np

from benchmarks.transports.pair import Bytes
from benchmarks.transports.plain import FLAG_BYTES, Flags
from orion.kernel.build.walker import meeting_walk
from orion.runtime.memory import RunMemory
from orion.runtime.ray.between import nothing_between
from orion.runtime.ray.inbox import Inbox, Landing
from orion.runtime.ray.links import Receiver, connect
from orion.runtime.ray.orders import Delivery, Flag, Piece
from orion.runtime.ray.regions import Region

WHOLE = Region("payload")


class LinkSide:
    """One connection in each direction: sent from the buffer, read by a thread to where it belongs, which then sets the
    flag."""

    def __init__(self, pipe: Connection, is_left: bool, size: int) -> None:
        self.buffer, self._got = np.zeros(size, np.uint8), np.zeros(size, np.uint8)
        self._number, self._messages = (0, 0) if is_left else (1, 0)
        self.flags = Flags(np.zeros(FLAG_BYTES, np.uint8), is_left)
        none = np.zeros(0, np.int64)
        memory = RunMemory(
            self.flags.control[None], (self.flags.done,), none, ((),), ((),), (none,), none, (none,), (), ()
        )
        inbox = Inbox()
        inbox.begin(1, Landing({"payload": self._got}, memory, meeting_walk(), nothing_between(memory)))
        self._receiver = Receiver("127.0.0.1", inbox, lambda sender, number, size: None)
        pipe.send(self._receiver.address)
        self._link = connect(pipe.recv(), self._number, 1 - self._number)

    def send(self) -> None:
        """Send the buffer, and with it the flag."""
        flag = Flag(0, self._number, self._messages)
        delivery = Delivery(1, self._number, self._messages, (flag,), (Piece(WHOLE, self.buffer),), ())
        self._link.send(delivery, ["payload"], lambda: False)
        self._messages += 1

    def receive(self) -> Bytes:
        """Wait for the flag."""
        self.flags.wait()
        return self._got

    def close(self) -> None:
        """Close the connections."""
        self._link.close()
        self._receiver.close()
