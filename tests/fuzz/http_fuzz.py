"""Fuzzing over HTTP: sends mutated messages and requests, and judges the responses."""

import asyncio
import json
from collections.abc import Mapping
from random import Random
from typing import Any, Final

from tests.fuzz.container import TOKEN
from tests.fuzz.corpus import HANDSHAKES, SESSION, STATELESS, answers_to, initialize
from tests.fuzz.http_wire import HttpConnection, Response, owes_response
from tests.fuzz.judging import Key, Owed, Verdict, faults_of, hinted, leaked, verdict_of, what_is_owed
from tests.fuzz.mutations import mutate_structure
from tests.fuzz.probes import Probe
from tests.fuzz.state import Fault, KnownValues

_STATUSES: Final = frozenset(
    (200, 202, 204, 400, 401, 403, 404, 405, 406, 408, 409, 411, 413, 414, 415, 417, 421, 426, 429, 431, 501, 503, 505)
)
_UNSERVED: Final = (501, 505)
"""Refusals of requests that no server could serve differently; there is no point in trying again."""
_TOO_LARGE: Final = 1 << 22


class HttpFuzz:
    """Several connections to one server, with a session for each revision."""

    def __init__(self, port: int, connections: int) -> None:
        self._port = port
        self._connections = [HttpConnection(port) for _ in range(connections)]
        self._values = KnownValues()
        self._sessions: dict[str, str] = {}
        self._spare_sessions: dict[str, str] = {}
        """Sessions for mutated requests, which may end them."""
        self._cancelled: set[Key] = set()
        self.faults: list[Fault] = []
        self.verdicts: dict[int, Verdict] = {}

    async def play(self, probes: list[Probe]) -> None:
        """Send probes over all connections, in new sessions."""
        self.verdicts.clear()
        self._cancelled.clear()
        await self._renew_sessions()
        shared = iter(probes)
        await asyncio.gather(*(self._play(connection, shared) for connection in self._connections))

    async def close(self) -> None:
        """Close all connections."""
        for connection in self._connections:
            await connection.close()

    async def ping(self) -> None:
        """Check that the server answers."""
        await self._ask(STATELESS, {"jsonrpc": "2.0", "id": 1, "method": "ping"})

    async def send(self, revision: str, request: bytes) -> list[Response]:
        """Send the bytes of one request in a new session, for a person to look at the responses."""
        await self._renew_sessions()
        return await self._exchange(
            self._connections[0], [self._with_session(revision, request)], [Random(0)], revision
        )

    async def _play(self, connection: HttpConnection, probes: Any) -> None:
        for probe in probes:
            group = [probe]
            if probe.number % 8 == 0:
                group += [other for _, other in zip(range(2), probes, strict=False)]
            await self._play_group(connection, group)

    async def _play_group(self, connection: HttpConnection, group: list[Probe]) -> None:
        """Send probes of a pipeline; those that the server left unanswered when it closed it are sent again, alone."""
        if len(group) > 1 and any(_goes_alone(probe, group[0].revision) for probe in group):
            for probe in group:
                await self._play_group(connection, [probe])
            return
        bodies = [self._values.fill(probe.revision, probe.body) for probe in group]
        requests = [probe.request(body, self._port) for probe, body in zip(group, bodies, strict=True)]
        revision = group[0].revision
        if group[0].framed:
            await connection.close()
        owed = [what_is_owed(body) for body in bodies]
        self._cancelled |= {one.cancels for one in owed if one.cancels is not None}
        try:
            responses = await self._exchange(
                connection,
                [self._with_session(revision, request, spare=group[0].framed) for request in requests],
                [Random(probe.seed) for probe in group],
                revision,
            )
        except TimeoutError:
            await connection.close()
            self._fault(group[0], requests[0], "no response in time", b"")
            return
        for probe, request, one, response in zip(group, requests, owed, responses, strict=False):
            await self._judge(probe, request, one, response)
        if not responses and len(group) == 1 and not _may_stay_silent(requests[0]):
            self._fault(group[0], requests[0], "the connection was closed without a response", b"")
        if group[0].framed:
            await connection.close()
        elif len(group) > 1:
            for probe in group[len(responses) :]:
                await self._play_group(connection, [probe])

    async def _exchange(
        self, connection: HttpConnection, requests: list[bytes], randoms: list[Random], revision: str
    ) -> list[Response]:
        answering: list[asyncio.Task[None]] = []

        def hear(place: int, response: Response, message: Any) -> bool:
            if isinstance(message, list):
                return False  # the replies to a batch
            if "method" in message and "id" in message:
                response.asked = True
                answering.append(asyncio.ensure_future(self._answer(revision, message, randoms[place])))
            return bool(message.get("method") == "notifications/subscriptions/acknowledged")

        def enough(response: Response) -> bool:
            """Streams of sessions never end, responses to HEAD have no body, and some requests are incomplete."""
            line = requests[0][:4]
            return bool(response.status) and ((response.streams and line == b"GET ") or line == b"HEAD")

        if len(requests) == 1 and not owes_response(requests[0]):
            await self._abandon(connection, requests[0])
            return []
        responses = await connection.exchange(requests, hear, enough)
        await asyncio.gather(*answering)
        return responses

    async def _abandon(self, connection: HttpConnection, request: bytes) -> None:
        """Send an incomplete request and leave."""
        await connection.close()
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", self._port)
            writer.write(request)
            await writer.drain()
            writer.transport.abort()
        except ConnectionError:
            pass  # the server may refuse it before all of it was sent

    async def _judge(self, probe: Probe, request: bytes, owed: Owed, response: Response) -> None:
        body = bytes(response.body)
        found = self._faults_of_response(response, body)
        replies: list[Any] = []
        try:
            replies = _replies(response, body)
        except ValueError:
            found.append("the response is not JSON")
        ended = b"mcp-session-id" in response.headers
        if ended:
            await self._end_session(response.headers[b"mcp-session-id"].decode())
        if not probe.framed:
            found += faults_of(replies, self._owed_over_http(owed, response)) if response.complete else []
            if not response.asked:
                self.verdicts[probe.number] = verdict_of(replies) if response.complete else ("listening",)
            for reply in replies:
                self._values.learn(probe.revision, reply)
        for fault in found:
            self._fault(probe, request, fault, body)

    def _owed_over_http(self, owed: Owed, response: Response) -> Owed:
        """Over HTTP, everything may be refused, and a cancelled request has a response without a reply."""
        if response.status not in (200, 202, 204):
            return Owed(1, 1, None if owed.keys is None else owed.keys | {None})
        return Owed(0, 1, owed.keys, items=owed.items) if owed.key in self._cancelled else owed

    def _faults_of_response(self, response: Response, body: bytes) -> list[str]:
        found = [] if response.status in _STATUSES else [f"unexpected status {response.status}"]
        if response.status >= 500 and response.status not in _UNSERVED and not _is_hinted(response, body):
            found.append(f"{response.status} has neither a reference nor a hint when to try again")
        if leaked(body) or any(leaked(value) for value in response.headers.values()):
            found.append("the response contains a secret")
        if response.status in (202, 204) and body:
            found.append(f"{response.status} has a body")
        return found

    def _fault(self, probe: Probe, request: bytes, text: str, reply: bytes) -> None:
        self.faults.append(Fault("http", probe.number, probe.revision, request, text, reply))

    def _with_session(self, revision: str, request: bytes, *, spare: bool = False) -> bytes:
        sessions = self._spare_sessions if spare else self._sessions
        return request.replace(SESSION.encode(), sessions.get(revision, "none").encode())

    async def _answer(self, revision: str, question: Mapping[str, Any], random: Random) -> None:
        """Send a mutated answer, and then a valid one in case it was not accepted."""
        answer = answers_to(question)
        for body in (mutate_structure(answer, random, 1), json.dumps(answer).encode()):
            await self._post(revision, body)

    async def _renew_sessions(self) -> None:
        for session in (*self._sessions.values(), *self._spare_sessions.values()):
            await self._end_session(session)
        for revision in HANDSHAKES:
            self._sessions[revision] = await self._open_session(revision)
            self._spare_sessions[revision] = await self._open_session(revision)

    async def _open_session(self, revision: str) -> str:
        hello = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": initialize(revision)}
        response = await self._post(STATELESS, json.dumps(hello).encode(), {"MCP-Protocol-Version": revision})
        session = response.headers[b"mcp-session-id"].decode()
        headers = {"MCP-Protocol-Version": revision, "Mcp-Session-Id": session}
        await self._post(revision, b'{"jsonrpc":"2.0","method":"notifications/initialized"}', headers)
        return session

    async def _end_session(self, session: str) -> None:
        await self._post(STATELESS, b"", {"Mcp-Session-Id": session}, "DELETE")

    async def _ask(self, revision: str, message: Mapping[str, Any]) -> None:
        response = await self._post(revision, json.dumps(message).encode(), {"MCP-Protocol-Version": HANDSHAKES[-1]})
        assert response.complete, "the server does not answer"

    async def _post(
        self, revision: str, body: bytes, headers: Mapping[str, str] | None = None, method: str = "POST"
    ) -> Response:
        own = {"MCP-Protocol-Version": revision, "Mcp-Session-Id": self._sessions.get(revision, "")}
        lines = {
            "Host": f"127.0.0.1:{self._port}",
            "Authorization": f"Bearer {TOKEN}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "Content-Length": str(len(body)),
            **(headers or own),
        }
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        request = f"{method} /mcp HTTP/1.1\r\n{head}\r\n".encode() + body
        connection = HttpConnection(self._port)
        [response] = await connection.exchange([request], lambda *_: False, lambda _: False)
        await connection.close()
        return response


def _goes_alone(probe: Probe, revision: str) -> bool:
    """Return whether a probe is not sent with others: its stream never ends, or its connection may be closed."""
    return probe.framed or probe.revision != revision or b"/listen" in probe.body


def _may_stay_silent(request: bytes) -> bool:
    return not owes_response(request) or len(request) > _TOO_LARGE


def _replies(response: Response, body: bytes) -> list[Any]:
    if response.streams:
        response._events = 0
        return [message for message in response.new_messages() if "method" not in message]
    if body and response.headers.get(b"content-type", b"").startswith(b"application/json"):
        message = json.loads(body)
        return [message] if isinstance(message, list) or "jsonrpc" in message else []
    return []


def _is_hinted(response: Response, body: bytes) -> bool:
    if b"retry-after" in response.headers:
        return True
    try:
        return hinted(json.loads(body)["error"].get("data"))
    except (ValueError, TypeError, KeyError, AttributeError):
        return False
