"""Transcripts: text files with the messages of a client and the expected messages of the server.

    revisions: 2025-06-18 .. 2025-11-25     the revisions to play it in: names, `a .. b`, `.. b`, `a ..` or all
    transports: memory, stdio, http         default: all of them
    container: Container                    a container of tests/transcripts/tools.py, or module.Name of another file
    capabilities: {"sampling":{}}           the capabilities of the client; default: none
    handshake: no                           default: the player performs the handshake, in revisions that have one
    ---
    # a comment
    > {"jsonrpc":"2.0","id":1,"method":"ping"}       a message of the client, which need not be JSON
    >b \\xff\\x00                                      bytes of the client, with escapes
    >listen                                          the client opens the GET stream of its HTTP session
    >leave 1                                         the client closes the HTTP stream of its request 1
    >end                                             the client ends the connection; last messages follow
    < {"jsonrpc":"2.0","id":1,"result":{}}           the next message of the server
    < 400 {"jsonrpc":"2.0","error":"<any>"}          the same, with its HTTP status (default: 200)
    < 202                                            an HTTP reply without a body; nothing on other transports
    any order:                                       the messages up to `end` may come in any order
    [2025-06-18 ..; http]                            the following lines are for these revisions or transports only
    [all]                                            the following lines are for all of them again

An indented line continues the previous one. `"<any>"` matches any value, and `<any>` inside a string any part of it.
`"<any:name>"` in a single expected message matches any value and keeps it: after that, `"<the:name>"` is that value
in messages of both sides, and `<the:name>` inside a string its text.

`$VERSION` is the revision. `$META` is the envelope of a stateless request in `_meta` (a harmless member in other
revisions), and `$ENVELOPE` the same without the client's capabilities. `$TAIL` is the end of a stateless result,
`$LIST_TAIL` the same for results with cache hints, and `$INFO` the server's entry in `_meta` of a result. `$MODE` is
the first member of a form in revisions that have several kinds of questions.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

from dependency_injector import containers

from axolotl_core.protocol.versions import REVISIONS, Revision

Filling: TypeAlias = Sequence[tuple[str, str]]

TRANSPORTS = ("memory", "stdio", "http")
CLIENT = {"name": "player", "version": "1"}

_BY_NAME = {revision.name: revision for revision in REVISIONS}
_HEADER = re.compile(r"(?P<key>[a-z]+): *(?P<value>.*)")
_HEADER_KEYS = {"revisions", "transports", "container", "capabilities", "handshake"}
_ACTS = re.compile(r">(?P<name>listen|leave|end)(?: (?P<id>\S+))?")
_EXPECTED = re.compile(r"< *(?P<status>[0-9]{3})? *(?P<message>.*)", re.DOTALL)
_SERVER_INFO = '"io.modelcontextprotocol/serverInfo":{"name":"transcripts","version":"1"}'


class TranscriptError(Exception):
    """A transcript is malformed."""


@dataclass(frozen=True)
class Send:
    """The client sends a message."""

    line: int
    data: bytes


@dataclass(frozen=True)
class Act:
    """The client performs an action: it opens a stream, closes a request, or ends the connection."""

    line: int
    name: str
    request_id: Any = None


@dataclass(frozen=True)
class Expected:
    """The server sends a message; without one, it is an HTTP reply without a body."""

    line: int
    status: int | None
    message: Any


@dataclass(frozen=True)
class Expect:
    """The server sends several messages in any order."""

    line: int
    messages: Sequence[Expected]


Step = Send | Act | Expect


@dataclass(frozen=True)
class _Line:
    number: int
    text: str
    revisions: frozenset[str]
    transports: frozenset[str]


@dataclass(frozen=True)
class Transcript:
    """A transcript file."""

    name: str
    revisions: Sequence[Revision]
    transports: Sequence[str]
    module: str
    container: str
    capabilities: str
    handshake: bool
    lines: Sequence[_Line]

    @property
    def target(self) -> str:
        """The container to play against, as the command line takes it."""
        return f"tests.transcripts.{self.module}:{self.container}"

    def container_class(self) -> type[containers.DeclarativeContainer]:
        """Return the container to play against."""
        found: type[containers.DeclarativeContainer] = getattr(
            import_module(f"tests.transcripts.{self.module}"), self.container
        )
        return found

    def steps(self, revision: Revision, transport: str) -> Sequence[Step]:
        """Return the steps for a revision and a transport."""
        chosen = [line for line in self.lines if revision.name in line.revisions and transport in line.transports]
        opening = _handshake(revision, self.capabilities) if self.handshake and not revision.stateless else []
        filling = _filling(revision, self.capabilities)
        return tuple(_steps([*opening, *chosen], filling))


def read_transcript(path: Path) -> Transcript:
    """Read a file, or raise TranscriptError."""
    return parse_transcript(path.stem, path.read_text(encoding="utf-8"))


def parse_transcript(name: str, text: str) -> Transcript:
    """Parse the text of a file, or raise TranscriptError."""
    header, separator, _ = text.partition("\n---\n")
    if not separator:
        raise TranscriptError(f"{name}: no line --- after the header")
    said = {}
    for line in filter(None, (line.partition("#")[0].rstrip() for line in header.splitlines())):
        match = _HEADER.fullmatch(line)
        if match is None or match["key"] not in _HEADER_KEYS:
            raise TranscriptError(f"{name}: {line!r} is no line of a header")
        said[match["key"]] = match["value"]
    transports = _transports(said.get("transports", ", ".join(TRANSPORTS)))
    revisions = _revisions(said.get("revisions", "all"))
    module, _, container = said.get("container", "Container").rpartition(".")
    return Transcript(
        name,
        tuple(revision for revision in REVISIONS if revision.name in revisions),
        tuple(transport for transport in TRANSPORTS if transport in transports),
        module or "tools",
        container,
        said.get("capabilities", "{}"),
        said.get("handshake", "yes") == "yes",
        tuple(_lines(name, text, header.count("\n") + 2)),
    )


def _lines(name: str, text: str, first: int) -> Iterator[_Line]:
    """Join continued lines, drop comments, and attach the section to each line."""
    revisions, transports = frozenset(_BY_NAME), frozenset(TRANSPORTS)
    joined: list[tuple[int, str]] = []
    for number, line in enumerate(text.splitlines()[first:], first + 1):
        if line.startswith((" ", "\t")) and joined:
            joined[-1] = joined[-1][0], f"{joined[-1][1]} {line.strip()}"
        elif line and not line.startswith("#"):
            joined.append((number, line))
    for number, line in joined:
        if line.startswith("["):
            revisions, transports = _section(name, number, line)
        elif line.startswith((">", "<")) or line in ("any order:", "end"):
            yield _Line(number, line, revisions, transports)
        else:
            raise TranscriptError(f"{name}:{number}: {line!r} is nothing that can be played")


def _section(name: str, number: int, line: str) -> tuple[frozenset[str], frozenset[str]]:
    revisions, transports = frozenset(_BY_NAME), frozenset(TRANSPORTS)
    for part in map(str.strip, line.strip("[]").split(";")):
        if part.split(",")[0].strip() in TRANSPORTS:
            transports = _transports(part)
        elif part != "all":
            revisions = _revisions(part)
    if not revisions or not transports:
        raise TranscriptError(f"{name}:{number}: {line!r} is for nobody")
    return revisions, transports


def _transports(text: str) -> frozenset[str]:
    named = frozenset(map(str.strip, text.split(",")))
    if not named <= set(TRANSPORTS):
        raise TranscriptError(f"{text!r} names an unknown transport")
    return named


def _revisions(text: str) -> frozenset[str]:
    names = list(_BY_NAME)
    if text == "all":
        return frozenset(names)
    if ".." in text:
        first, last = (part.strip() for part in text.split(".."))
        begin = names.index(first) if first else 0
        end = names.index(last) if last else len(names) - 1
        return frozenset(names[begin : end + 1])
    named = frozenset(map(str.strip, text.split(",")))
    if not named <= set(names):
        raise TranscriptError(f"{text!r} names an unknown revision")
    return named


def _handshake(revision: Revision, capabilities: str) -> list[_Line]:
    """Return the steps of a regular handshake."""
    params = {"protocolVersion": revision.name, "capabilities": json.loads(capabilities), "clientInfo": CLIENT}
    initialize = {"jsonrpc": "2.0", "id": "handshake", "method": "initialize", "params": params}
    texts = (
        "> " + json.dumps(initialize),
        '< {"jsonrpc":"2.0","id":"handshake","result":"<any>"}',
        '> {"jsonrpc":"2.0","method":"notifications/initialized"}',
    )
    return [_Line(0, text, frozenset(), frozenset()) for text in texts]


def _steps(lines: Sequence[_Line], filling: Filling) -> Iterator[Step]:
    group: list[Expected] | None = None
    for line in lines:
        if line.text == "any order:":
            group = []
        elif line.text == "end":
            yield Expect(line.number, tuple(group or ()))
            group = None
        elif line.text.startswith(">"):
            yield _said(line, filling)
        elif group is not None:
            group.append(_expected(line, filling))
        else:
            yield Expect(line.number, (_expected(line, filling),))


def _said(line: _Line, filling: Filling) -> Step:
    act = _ACTS.fullmatch(line.text)
    if act is not None:
        return Act(line.number, act["name"], json.loads(act["id"]) if act["id"] else None)
    if line.text.startswith(">b "):
        return Send(line.number, line.text[3:].encode("latin-1").decode("unicode_escape").encode("latin-1"))
    return Send(line.number, _filled(line.text[1:].strip(), filling).encode())


def _expected(line: _Line, filling: Filling) -> Expected:
    match = _EXPECTED.fullmatch(line.text)
    assert match is not None
    text = _filled(match["message"], filling)
    try:
        message = json.loads(text) if text else None
    except ValueError as error:
        raise TranscriptError(f"line {line.number}: {error}: {text}") from error
    return Expected(line.number, int(match["status"]) if match["status"] else None, message)


def _filling(revision: Revision, capabilities: str) -> Filling:
    """Return the replacements for words with a dollar sign, longer ones first."""
    info = _SERVER_INFO if revision.stateless else ""
    tail = f',"resultType":"complete","_meta":{{{info}}}' if revision.stateless else ""
    list_tail = ',"ttlMs":0,"cacheScope":"private"' + tail if revision.stateless else ""
    envelope = (
        f'"io.modelcontextprotocol/protocolVersion":"{revision.name}",'
        f'"io.modelcontextprotocol/clientInfo":{json.dumps(CLIENT)}'
        if revision.stateless
        else '"example.com/unknown":true'
    )
    declared = f',"io.modelcontextprotocol/clientCapabilities":{capabilities}' if revision.stateless else ""
    return (
        ("$VERSION", revision.name),
        ("$ENVELOPE", envelope),
        ("$META", envelope + declared),
        ("$LIST_TAIL", list_tail),
        ("$TAIL", tail),
        ("$INFO", f",{info}" if info else ""),
        ("$MODE", '"mode":"form",' if revision.rich_forms else ""),
    )


def _filled(text: str, filling: Filling) -> str:
    for name, value in filling:
        text = text.replace(name, value)
    return text
