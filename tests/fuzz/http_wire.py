"""Plays messages to an HTTP server over several connections, and collects what comes back."""

import asyncio
import json
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import httptools

PATIENCE_SECONDS: Final = 20.0
_PIECE: Final = 1 << 16


class Response:
    """A response, complete or not."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: dict[bytes, bytes] = {}
        self.body = bytearray()
        self.complete = False
        self.asked = False
        """Whether the server asked a question before it replied."""
        self._events = 0

    @property
    def streams(self) -> bool:
        """Whether the body is an event stream."""
        return self.headers.get(b"content-type", b"").startswith(b"text/event-stream")

    def new_messages(self) -> Iterator[Any]:
        """Give the messages of an event stream that have arrived since the last time."""
        while (end := self.body.find(b"\n\n", self._events)) >= 0:
            event, self._events = bytes(self.body[self._events : end]), end + 2
            data = b"".join(line[5:] for line in event.splitlines() if line.startswith(b"data:")).strip()
            if data and not event.startswith(b"event: endpoint"):
                yield json.loads(data)


class Responses:
    """Responses on one connection, the last of which may be incomplete."""

    def __init__(self) -> None:
        self.responses: deque[Response] = deque()
        self.parser = httptools.HttpResponseParser(self)

    def has(self, count: int) -> bool:
        """Return whether a number of responses are complete."""
        return sum(response.complete for response in self.responses) >= count

    def on_message_begin(self) -> None:
        self.responses.append(Response())

    def on_header(self, name: bytes, value: bytes) -> None:
        self.responses[-1].headers[name.lower()] = value

    def on_headers_complete(self) -> None:
        self.responses[-1].status = self.parser.get_status_code()

    def on_body(self, body: bytes) -> None:
        self.responses[-1].body += body

    def on_message_complete(self) -> None:
        if self.responses[-1].status < 200:
            self.responses.pop()  # 100 Continue
        else:
            self.responses[-1].complete = True


class HttpConnection:
    """One connection, opened on first use and again after it was closed."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._reader: asyncio.StreamReader
        self._parsing: Responses
        self._writer: asyncio.StreamWriter | None = None

    async def exchange(
        self, requests: Sequence[bytes], hear: Callable[[int, Response, Any], bool], enough: Callable[[Response], bool]
    ) -> list[Response]:
        """Send requests at once and wait for a response to each; there are fewer if the server closes the connection.

        `hear` gets each message of a stream, and `enough` each incomplete response; both return whether to stop.
        """
        reader = await self._open()
        assert self._writer is not None
        parsing = self._parsing
        try:
            self._writer.write(b"".join(requests))
            await self._read(reader, parsing, len(requests), hear, enough)
        except (ConnectionError, httptools.HttpParserError):
            await self.close()
        responses = list(parsing.responses)
        parsing.responses.clear()
        if len(responses) < len(requests) or not all(response.complete for response in responses):
            await self.close()
        return responses

    async def close(self) -> None:
        """Close the connection."""
        if self._writer is not None:
            self._writer.transport.abort()
            self._writer = None

    async def _read(
        self,
        reader: asyncio.StreamReader,
        parsing: Responses,
        count: int,
        hear: Callable[[int, Response, Any], bool],
        enough: Callable[[Response], bool],
    ) -> None:
        """Read until all responses are complete, the connection ends, or a response is enough as it is."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while len(parsing.responses) < count or not parsing.responses[-1].complete:
                data = await reader.read(_PIECE)
                if not data:
                    await self.close()
                    return
                parsing.parser.feed_data(data)
                for place, response in enumerate(parsing.responses):
                    heard = [hear(place, response, one) for one in response.new_messages()] if response.streams else []
                    if any(heard):
                        return
                if parsing.responses and not parsing.responses[-1].complete and enough(parsing.responses[-1]):
                    return
        last = parsing.responses[-1]
        if last.headers.get(b"connection", b"").lower() == b"close":
            await self.close()

    async def _open(self) -> asyncio.StreamReader:
        if self._writer is None or self._writer.is_closing() or self._reader.at_eof():
            await self.close()
            self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
            self._parsing = Responses()
        return self._reader


class _Counting:
    """The callbacks of a parser that counts complete requests."""

    def __init__(self) -> None:
        self.complete = 0

    def on_message_complete(self) -> None:
        self.complete += 1


def owes_response(data: bytes) -> bool:
    """Return whether a server has read a whole request, or something that is none, and so has to respond."""
    counting = _Counting()
    parser = httptools.HttpRequestParser(counting)
    try:
        parser.feed_data(data)
    except httptools.HttpParserUpgrade:
        return True
    except httptools.HttpParserError:
        return True
    return counting.complete > 0
