"""Reading a request's body, within a size and a time."""

import asyncio
from collections.abc import Mapping

from axolotl_server.deadlines import DeadlineLane
from axolotl_server.http.asgi import Receive
from axolotl_server.http.refusals import HttpRefusal

__all__ = ["BodyReader"]


class _Reading:
    """A body that is on its way, and the task that waits for it."""

    __slots__ = ("late", "task")

    def __init__(self, task: "asyncio.Task[object] | None") -> None:
        self.task = task
        self.late = False

    def give_up(self) -> None:
        self.late = True
        if self.task is not None:
            self.task.cancel()


class BodyReader:
    """Reads whole bodies; one that is too large is not kept, one that is too slow is not waited for."""

    def __init__(self, max_bytes: int, timeout_seconds: float) -> None:
        self._max_bytes = max_bytes
        self._waiting: DeadlineLane[_Reading] = DeadlineLane(timeout_seconds, _Reading.give_up)

    async def read(self, headers: Mapping[bytes, bytes], receive: Receive) -> bytes:
        """Read a body.

        Raises:
            HttpRefusal: 413 if it is too large, 408 if it does not arrive, 400 if the client left.
        """
        announced = headers.get(b"content-length")
        if announced is not None and len(announced) < 20 and int(announced) > self._max_bytes:
            raise self._too_large()
        reading = _Reading(asyncio.current_task())
        self._waiting.add(reading)
        try:
            message = await receive()
            if message["type"] == "http.request" and not message.get("more_body"):
                body: bytes = message.get("body", b"")
                self._check_size(body)
                return body
            return await self._read_on(message, receive)
        except asyncio.CancelledError:
            if not reading.late or reading.task is None:
                raise
            reading.task.uncancel()
            raise HttpRefusal(408, "Request timeout: the body did not arrive in time") from None
        finally:
            self._waiting.discard(reading)

    async def _read_on(self, message: Mapping[str, object], receive: Receive) -> bytes:
        body = bytearray()
        while True:
            if message["type"] == "http.disconnect":
                raise HttpRefusal(400, "Bad request: the client left before its body was complete")
            chunk = message.get("body", b"")
            assert isinstance(chunk, bytes)
            body += chunk
            self._check_size(body)
            if not message.get("more_body"):
                return bytes(body)
            message = await receive()

    def _check_size(self, body: bytes | bytearray) -> None:
        if len(body) > self._max_bytes:
            raise self._too_large()

    def _too_large(self) -> HttpRefusal:
        return HttpRefusal(413, f"Content too large: a message may have {self._max_bytes} bytes")
