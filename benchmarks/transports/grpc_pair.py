"""gRPC with raw bytes: a call whose request is one payload and whose response is the other."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from benchmarks.transports.pair import read, timed_rounds, write

OPTIONS = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)]
METHODS = {False: "/transports/Hand", True: "/transports/WriteAndRead"}


class GrpcPair:
    """This process as the client of one that it starts."""

    def __init__(self) -> None:
        import grpc

        context = multiprocessing.get_context("spawn")
        self._pipe, far = context.Pipe()
        self._server = context.Process(target=_serve, args=(far,), daemon=True)
        self._server.start()
        process = multiprocessing.current_process().pid
        assert process is not None
        assert self._server.pid is not None
        self.sides = process, self._server.pid
        self.others: tuple[int, ...] = ()
        self._channel = grpc.insecure_channel(f"127.0.0.1:{self._pipe.recv()}", options=OPTIONS)
        self._calls = {touched: self._channel.unary_unary(method) for touched, method in METHODS.items()}

    def prepare(self, size: int) -> None:
        """A buffer of that size; the other process answers with as many bytes as it gets."""
        self._buffer = np.zeros(size, np.uint8)

    def rounds(self, count: int, touched: bool) -> list[float]:
        """The seconds of each round."""
        call = self._calls[touched]
        return timed_rounds(
            lambda: self._buffer, lambda: np.frombuffer(call(self._buffer.tobytes()), np.uint8), count, touched
        )

    def close(self) -> None:
        """End the other process."""
        self._channel.close()
        self._pipe.send("end")
        self._server.join()


class _Handler:
    """Answers calls of both methods with a payload as large as the request."""

    def __init__(self) -> None:
        self._buffer = np.zeros(0, np.uint8)

    def service(self, details: Any) -> Any:
        """The handler of a method, for gRPC."""
        import grpc

        touched = details.method == METHODS[True]
        return grpc.unary_unary_rpc_method_handler(lambda request, _: self.answer(request, touched))

    def answer(self, request: bytes, touched: bool) -> bytes:
        """The response to a request."""
        found = np.frombuffer(request, np.uint8)
        if found.size != self._buffer.size:
            self._buffer = np.zeros(found.size, np.uint8)
        if touched:
            read(found)
            write(self._buffer, 1)
        return self._buffer.tobytes()


def _serve(pipe: Connection) -> None:
    import grpc

    server = grpc.server(ThreadPoolExecutor(1), handlers=(_Handler(),), options=OPTIONS)
    pipe.send(server.add_insecure_port("127.0.0.1:0"))
    server.start()
    pipe.recv()
    server.stop(None)
