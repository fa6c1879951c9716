"""The messages of a run: each is made from the seed and its number alone, so that it can be repeated alone."""

import json
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from tests.fuzz.container import TOKEN
from tests.fuzz.corpus import BATCHING, HANDSHAKES, SESSION, STATELESS, requests_of
from tests.fuzz.framing import Request, mutate_request
from tests.fuzz.mutations import ODD_VALUES, mutate_bytes, mutate_structure

_REVISIONS: Final = (*HANDSHAKES, STATELESS, STATELESS, STATELESS)
_LONGEST_HEADER: Final = 4000
_HUGE: Final = 5 * 1024 * 1024


@dataclass(frozen=True)
class Probe:
    """A message of a run."""

    number: int
    revision: str
    body: bytes
    """The message. Some values in it are known only when it is sent."""
    seed: int
    framed: bool
    """Whether the HTTP request is mutated too; then its verdict cannot be compared with stdio."""

    def request(self, body: bytes, port: int) -> bytes:
        """Return the HTTP request."""
        request = Request(_headers(self.revision, body, port), body)
        random = Random(self.seed)
        return mutate_request(request, random) if self.framed else request.encode()


def make_probe(seed: int, number: int) -> Probe:
    """Make one message of a run."""
    random = Random(f"{seed}/{number}")
    revision = random.choice(_REVISIONS)
    body = _body(revision, number, random)
    return Probe(number, revision, body, random.getrandbits(32), framed=random.random() < 0.2)


def _body(revision: str, number: int, random: Random) -> bytes:
    dice = random.random()
    if dice < 0.0003:
        return random.choice((b"[" * _HUGE, b'{"jsonrpc":"2.0","id":1,"method":"' + b"x" * _HUGE + b'"}', b" " * _HUGE))
    if revision in BATCHING and dice < 0.15:
        items: list[Any] = [_message(revision, f"{number}.{place}", random) for place in range(random.randrange(5))]
        return mutate_structure(items, random, random.choice((0, 1, 2)))
    message = _message(revision, number if dice < 0.6 else str(number), random)
    if dice < 0.25:
        other = mutate_structure(_message(revision, f"{number}.9", random), random, 0)
        return mutate_bytes(mutate_structure(message, random, random.choice((0, 0, 1))), random, other)
    return mutate_structure(message, random, random.choice((0, 1, 1, 1, 2, 3)))


def _message(revision: str, identifier: object, random: Random) -> dict[str, Any]:
    message = {"jsonrpc": "2.0", **random.choice(requests_of(revision))}
    if message.get("id") == "@ID@":
        message["id"] = identifier
    if message.get("method") == "notifications/cancelled":
        earlier = int(float(str(identifier))) - random.choice((1, 2, 3, 5, 8))
        message["params"] = {**message["params"], "requestId": random.choice((earlier, str(earlier)))}
    if random.random() < 0.01:
        message["id"] = random.choice(ODD_VALUES)
    return message


def _headers(revision: str, body: bytes, port: int) -> list[tuple[bytes, bytes]]:
    headers = [
        (b"Host", b"127.0.0.1:%d" % port),
        (b"Authorization", f"Bearer {TOKEN}".encode()),
        (b"Content-Type", b"application/json"),
        (b"Accept", b"application/json, text/event-stream"),
        (b"MCP-Protocol-Version", revision.encode()),
    ]
    if revision != STATELESS:
        return [*headers, (b"Mcp-Session-Id", SESSION.encode())]
    return headers + _mirrored(body)


def _mirrored(body: bytes) -> list[tuple[bytes, bytes]]:
    """Return the headers that repeat parts of a message, as a correct client would send them."""
    try:
        message = json.loads(body)
        method, params = message["method"], message.get("params")
        found = [(b"Mcp-Method", method.encode("latin-1"))] if method.isprintable() else []
        names = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
        name = params.get(names.get(method, "taskId")) if isinstance(params, dict) else None
        if isinstance(name, str) and name.isprintable() and name == name.strip():
            found.append((b"Mcp-Name", name.encode("latin-1")))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return [(b"Mcp-Method", b"tools/call"), (b"Mcp-Name", b"echo")]
    return [pair for pair in found if len(pair[1]) <= _LONGEST_HEADER]
