"""The transcript player: a player that cannot fail proves nothing."""

from typing import Any

import pytest

from axolotl_core.protocol.versions import REVISIONS
from tests.transcripts.matching import differences, kept, paired, recalled, same
from tests.transcripts.players import Player, Received
from tests.transcripts.rules import WireRules
from tests.transcripts.test_transcripts import play
from tests.transcripts.transcript import Act, Expect, Expected, Send, TranscriptError, parse_transcript

FIRST, SECOND, THIRD, FOURTH, STATELESS = REVISIONS
ABLE: Any = {"elicitation": {}, "sampling": {}, "roots": {}}


class Scripted(Player):
    """A server with scripted messages."""

    def __init__(self, *messages: Any, bodiless: int | None = None) -> None:
        self._messages = list(messages)
        self._bodiless = bodiless

    async def send(self, data: bytes) -> int | None:
        return self._bodiless

    async def receive(self) -> Received:
        return Received(self._messages.pop(0), 200)

    async def do(self, act: Act) -> None:
        self._messages.append({"jsonrpc": "2.0", "method": act.name, "params": {"id": act.request_id}})

    async def finish(self) -> list[Received]:
        return []


@pytest.mark.parametrize(
    ("expected", "actual", "places"),
    [
        pytest.param({"a": 1}, {"a": 1}, [], id="equal"),
        pytest.param({"a": 1, "b": 2}, {"b": 2, "a": 1}, [], id="order of members"),
        pytest.param({"a": "<any>"}, {"a": [1]}, [], id="any value"),
        pytest.param("Reference: <any>!", "Reference: f00!", [], id="any part"),
        pytest.param("Reference: <any>!", "Reference: f00", ["$"], id="other text around"),
        pytest.param({"a": 1}, {}, ["$.a"], id="missing"),
        pytest.param({}, {"a": 1}, ["$.a"], id="too much"),
        pytest.param(1, 1.0, ["$"], id="integer and float"),
        pytest.param(1, True, ["$"], id="integer and boolean"),
        pytest.param("1", 1, ["$"], id="string and integer"),
        pytest.param([1, 2], [1], ["$"], id="length"),
        pytest.param([1, 2], [2, 1], ["$[0]", "$[1]"], id="order of items"),
        pytest.param({"a": [{"b": 1}]}, {"a": [{"b": 2}]}, ["$.a[0].b"], id="deep inside"),
    ],
)
def test_differences_are_found(expected: Any, actual: Any, places: list[str]) -> None:
    """A difference is reported with its location."""
    assert [found.partition(":")[0] for found in differences(expected, actual)] == places


def test_groups_and_batches_have_no_order() -> None:
    """Messages of a group match in any order, each one once."""
    assert paired([{"id": 1}, {"id": "<any>"}], [{"id": 2}, {"id": 1}])
    assert not paired([{"id": 1}, {"id": 1}], [{"id": 1}, {"id": 2}])
    assert not paired([{"id": 1}], [{"id": 1}, {"id": 1}])
    assert same([1, 2], [2, 1])


@pytest.mark.parametrize(
    "text",
    [
        "revisions: all\n> {}",
        "revision: all\n---\n> {}",
        "revisions: 1999-01-01\n---\n> {}",
        "transports: pigeon\n---\n> {}",
        "revisions: all\n---\nhello",
        "revisions: all\n---\n[1999-01-01]\n> {}",
    ],
)
def test_a_transcript_that_cannot_be_read_is_refused(text: str) -> None:
    """A mistake in a transcript raises an error."""
    with pytest.raises(TranscriptError):
        parse_transcript("mistaken", text)


def test_sections_choose_revisions_and_transports() -> None:
    """A section applies to its revisions and transports, and `[all]` ends it."""
    text = "handshake: no\n---\n[2025-06-18 ..; http]\n> 1\n[.. 2025-03-26]\n> 2\n[all]\n> 3\n> $VERSION"
    transcript = parse_transcript("sections", text)

    def sent(revision: Any, transport: str) -> list[bytes]:
        return [step.data for step in transcript.steps(revision, transport) if isinstance(step, Send)]

    assert sent(FIRST, "http") == [b"2", b"3", b"2024-11-05"]
    assert sent(THIRD, "http") == [b"1", b"3", b"2025-06-18"]
    assert sent(STATELESS, "memory") == [b"3", b"2026-07-28"]


def test_a_handshake_is_played_where_there_is_one() -> None:
    """The player performs the handshake in revisions that have one, unless the transcript does it."""
    transcript = parse_transcript("greeting", "revisions: all\n---\n> {}")
    assert [len(transcript.steps(revision, "memory")) for revision in REVISIONS] == [4, 4, 4, 4, 1]


def test_lines_are_continued_and_bytes_escaped() -> None:
    """An indented line continues the previous one, and bytes can be escaped."""
    transcript = parse_transcript("lines", 'handshake: no\n---\n# no\n< 404 {"a":\n   1}\n>b \\xff\\n')
    assert transcript.steps(FIRST, "http") == (
        Expect(4, (Expected(4, 404, {"a": 1}),)),
        Send(6, b"\xff\n"),
    )


@pytest.mark.parametrize(
    "said",
    [
        pytest.param({"jsonrpc": "2.0", "id": 1, "result": {"more": 1}}, id="another result"),
        pytest.param({"jsonrpc": "2.0", "id": "1", "result": {}}, id="another id"),
        pytest.param({"jsonrpc": "2.0", "error": {"code": -32600, "message": ""}}, id="an error"),
    ],
)
async def test_playing_finds_what_was_not_expected(said: Any) -> None:
    """An unexpected message fails the play."""
    text = '---\n> {"jsonrpc":"2.0","id":1,"method":"ping"}\n> {"jsonrpc":"2.0","id":"1","method":"ping"}'
    steps = parse_transcript("ping", f'handshake: no\n{text}\n< {{"jsonrpc":"2.0","id":1,"result":{{}}}}').steps(
        FIRST, "http"
    )
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        await play(steps, Scripted(said), WireRules(FIRST))


async def test_playing_compares_statuses() -> None:
    """An unexpected status fails the play, with or without a body."""
    with_body = parse_transcript("status", 'handshake: no\n---\n< 404 {"jsonrpc":"2.0","error":"<any>"}')
    error = {"jsonrpc": "2.0", "error": {"code": -32600, "message": ""}}
    with pytest.raises(AssertionError, match="HTTP status 200"):
        await play(with_body.steps(FIRST, "http"), Scripted(error), WireRules(FIRST))
    unannotated = parse_transcript("notice", 'handshake: no\n---\n> {"jsonrpc":"2.0","method":"x"}')
    with pytest.raises(AssertionError, match="HTTP status 400"):
        await play(unannotated.steps(FIRST, "http"), Scripted(bodiless=400), WireRules(FIRST))


async def test_values_are_kept() -> None:
    """A value of a message can be kept, expected again and sent back, whole or inside a string."""
    text = (
        'handshake: no\n---\n< {"jsonrpc":"2.0","method":"notifications/message","params":"<any:first>"}\n'
        '< {"jsonrpc":"2.0","method":"notifications/message","params":"<the:first>"}\n'
        '< {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"<the:data>!"}}'
    )

    def said(data: str) -> Any:
        params = {"level": "info", "data": data}
        return {"jsonrpc": "2.0", "method": "notifications/message", "params": params}

    first, second, _ = parse_transcript("kept", text).steps(FIRST, "http")
    await play((first, second), Scripted(said("one"), said("one")), WireRules(FIRST))
    with pytest.raises(pytest.fail.Exception, match="one"):
        await play((first, second), Scripted(said("one"), said("other")), WireRules(FIRST))
    assert list(kept({"a": ["<any:x>", 1]}, {"a": [[2], 1]})) == [("x", [2])]
    assert recalled('{"a":"<the:x>","b":"<the:y>!"}', {"x": [2], "y": 'q"'}) == '{"a":[2],"b":"q\\"!"}'


async def test_acts_are_done() -> None:
    """The player performs actions with the given id."""
    text = 'handshake: no\n---\n>leave "x"\n< {"jsonrpc":"2.0","method":"leave","params":{"id":"x"}}'
    leave, expected = parse_transcript("acts", text).steps(FIRST, "http")
    assert leave == Act(3, "leave", "x")
    player = Scripted()
    await play((leave,), player, WireRules(FIRST))
    assert isinstance(expected, Expect)
    assert (await player.receive()).message == expected.messages[0].message


def test_capabilities_are_declared() -> None:
    """The capabilities of a transcript are declared in the handshake or in every request."""
    transcript = parse_transcript("able", 'capabilities: {"roots":{}}\n---\n> {$META}')
    handshake, request = transcript.steps(FIRST, "http")[0], transcript.steps(STATELESS, "http")[0]
    assert isinstance(handshake, Send)
    assert b'"capabilities": {"roots": {}}' in handshake.data
    assert isinstance(request, Send)
    assert b'"io.modelcontextprotocol/clientCapabilities":{"roots":{}}' in request.data


def listing(**tool: Any) -> Any:
    return {"tools": [{"name": "t", "description": "", "inputSchema": {"type": "object"}, **tool}]}


@pytest.mark.parametrize(
    ("revision", "method", "result"),
    [
        pytest.param(FIRST, "tools/list", listing(annotations={}), id="annotations before their time"),
        pytest.param(SECOND, "tools/list", listing(title="T"), id="title before its time"),
        pytest.param(THIRD, "tools/list", listing(icons=[]), id="icons before their time"),
        pytest.param(FOURTH, "tools/list", listing(colour="red"), id="a member that no schema has"),
        pytest.param(FOURTH, "tools/list", listing(outputSchema={"type": "array"}), id="output that is no object"),
        pytest.param(FOURTH, "tools/list", {"tools": [{"name": "t"}]}, id="no input schema"),
        pytest.param(STATELESS, "tools/list", listing(), id="no word on caching"),
        pytest.param(SECOND, "tools/call", {"content": [], "structuredContent": {}}, id="structure before its time"),
        pytest.param(FOURTH, "tools/call", {"content": [], "structuredContent": [1]}, id="structure of no object"),
        pytest.param(FOURTH, "tools/call", {"structuredContent": {}}, id="no content"),
        pytest.param(STATELESS, "tools/call", {"content": []}, id="no result type"),
        pytest.param(
            FIRST, "tools/call", {"content": [{"type": "audio", "data": "", "mimeType": "a/b"}]}, id="audio too early"
        ),
        pytest.param(
            SECOND,
            "tools/call",
            {"content": [{"type": "resource_link", "uri": "a:b", "name": "b"}]},
            id="link too early",
        ),
        pytest.param(SECOND, "prompts/list", {"prompts": [{"name": "p", "title": "P"}]}, id="title of a prompt"),
        pytest.param(FOURTH, "prompts/get", {"messages": [{"role": "user", "content": []}]}, id="several blocks"),
        pytest.param(THIRD, "resources/list", {"resources": [{"uri": "a:b", "name": "b", "icons": []}]}, id="icons"),
        pytest.param(SECOND, "resources/read", {"contents": [{"uri": "a:b", "text": "", "_meta": {}}]}, id="meta"),
        pytest.param(FOURTH, "resources/read", {"contents": []}, id="nothing to read"),
        pytest.param(
            STATELESS,
            "prompts/list",
            {"resultType": "input_required", "requestState": "x"},
            id="a question instead of a list",
        ),
        pytest.param(FOURTH, "logging/setLevel", {"resultType": "complete"}, id="a type before its time"),
        pytest.param(FOURTH, "completion/complete", {"completion": {"values": ["v"] * 101}}, id="too many completions"),
    ],
)
def test_rules_find_what_the_schema_forbids(revision: Any, method: str, result: Any) -> None:
    """A result that the revision's schema does not allow is reported."""
    rules = WireRules(revision)
    rules.sent({"jsonrpc": "2.0", "id": 1, "method": method, "params": {"name": "t"}})
    with pytest.raises((AssertionError, ValueError)):
        rules.check({"jsonrpc": "2.0", "id": 1, "result": result})


@pytest.mark.parametrize(
    "message",
    [
        pytest.param({"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": ""}}, id="null id"),
        pytest.param({"jsonrpc": "2.0", "id": 1, "error": {"code": -32022, "message": ""}}, id="a code of another era"),
        pytest.param({"jsonrpc": "2.0", "id": 1, "error": {"code": -32600}}, id="no message"),
        pytest.param({"jsonrpc": "2.0", "id": 1, "result": {}, "error": {}}, id="both result and error"),
        pytest.param({"id": 1, "result": {}}, id="no version"),
        pytest.param([{"jsonrpc": "2.0", "id": 1, "result": {}}], id="a batch"),
        pytest.param({"jsonrpc": "2.0", "id": 1, "method": "roots/list"}, id="a question that nobody can answer"),
        pytest.param({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, id="a question that no server asks"),
        pytest.param({"jsonrpc": "2.0", "method": "notifications/unheard"}, id="an unknown notification"),
    ],
)
def test_rules_find_malformed_messages(message: Any) -> None:
    """A malformed message is reported."""
    rules = WireRules(FOURTH)
    rules.sent({"jsonrpc": "2.0", "id": 1, "method": "ping"})
    with pytest.raises((AssertionError, ValueError, KeyError)):
        rules.check(message)


def test_rules_find_news_for_nobody() -> None:
    """A notification needs the id of an acknowledged subscription; progress needs a token and must increase."""
    rules = WireRules(STATELESS)
    rules.sent({"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": {}})
    meta = {"io.modelcontextprotocol/subscriptionId": 1}
    news = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": {"_meta": meta}}
    with pytest.raises(AssertionError):
        rules.check(news)
    acknowledged = "notifications/subscriptions/acknowledged"
    rules.check({"jsonrpc": "2.0", "method": acknowledged, "params": {"notifications": {}, "_meta": meta}})
    rules.check(news)
    meta["io.modelcontextprotocol/subscriptionId"] = 2
    with pytest.raises(KeyError):
        rules.check(news)
    progress = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 1, "progress": 1}}
    with pytest.raises(KeyError):
        rules.check(progress)
    rules.sent({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"_meta": {"progressToken": 1}}})
    rules.check(progress)
    with pytest.raises(AssertionError):
        rules.check(progress)


def test_rules_find_questions_that_a_revision_lacks() -> None:
    """Forms use only what the revision supports, and a stateless server sends no requests."""
    schema = {"type": "object", "properties": {"name": {"type": "string", "default": "x"}}}
    params = {"message": "Who?", "requestedSchema": schema}
    question = {"jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": params}
    for revision in (THIRD, STATELESS):
        rules = WireRules(revision)
        rules.sent({"id": 1, "method": "initialize", "params": {"protocolVersion": "", "capabilities": ABLE}})
        with pytest.raises((AssertionError, KeyError)):
            rules.check(question)
    rules = WireRules(FOURTH)
    rules.sent({"id": 1, "method": "initialize", "params": {"protocolVersion": "", "capabilities": ABLE}})
    rules.check(question)


def test_rules_hold_outputs_to_their_listed_schema() -> None:
    """Structured content is validated against the listed output schema."""
    rules = WireRules(FOURTH)
    rules.sent({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    rules.check({"jsonrpc": "2.0", "id": 1, "result": listing(outputSchema=schema)})
    rules.sent({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "t"}})
    rules.check({"jsonrpc": "2.0", "id": 2, "result": {"content": [], "structuredContent": {"n": 1}}})
    with pytest.raises(ValueError, match="integer"):
        rules.check({"jsonrpc": "2.0", "id": 2, "result": {"content": [], "structuredContent": {"n": "x"}}})
