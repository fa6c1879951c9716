"""All transcripts, over every transport and in every revision that they name."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeGuard

import pytest

from axolotl_core.protocol.versions import Revision
from tests.support.commands import constants
from tests.support.servers.serving import PATIENCE_SECONDS, BackgroundServers
from tests.transcripts.matching import differences, kept, paired, recalled, same
from tests.transcripts.players import HttpPlayer, MemoryPlayer, Player, Received, StdioPlayer
from tests.transcripts.rules import WireRules
from tests.transcripts.transcript import Act, Expect, Expected, Send, Step, Transcript, read_transcript

pytestmark = pytest.mark.slow

TRANSCRIPTS = [read_transcript(path) for path in sorted(Path(__file__).parent.glob("*.transcript"))]
PLAYS = [
    pytest.param(transcript, revision, transport, id=f"{transcript.name}-{revision.name}-{transport}")
    for transcript in TRANSCRIPTS
    for revision in transcript.revisions
    for transport in transcript.transports
]


CONSTANTS: Mapping[str, Mapping[str, object]] = {
    "caching:Container": {"axolotl_server.features.catalogue.PAGE_SIZE": 3},
    "changing:Narrow": {
        "axolotl_server.features.resources.MAX_RESOURCES": 2,
        "axolotl_server.protocol.subscriptions.MAX_RESOURCES": 2,
    },
    "paging:Container": {"axolotl_server.features.catalogue.PAGE_SIZE": 2},
    "skilled:SmallPages": {"axolotl_server.features.catalogue.PAGE_SIZE": 1},
    "speaking:Quiet": {
        "axolotl_server.protocol.request._LOG_LEVEL": "error",
        "axolotl_server.protocol.request.PROGRESS_PER_SECOND": 0.001,
        "axolotl_server.protocol.request.LOG_MESSAGES_PER_SECOND": 0.001,
    },
}
"""Smaller bounds for some servers."""


@pytest.mark.parametrize(("transcript", "revision", "transport"), PLAYS)
async def test_transcript(
    transcript: Transcript,
    revision: Revision,
    transport: str,
    http_servers: BackgroundServers,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The server sends exactly the expected messages, and each matches the schema of the revision."""
    own = CONSTANTS.get(f"{transcript.module}:{transcript.container}", {})
    for name, value in own.items():
        monkeypatch.setattr(name, value)
    player: Player
    if transport == "memory":
        player = await MemoryPlayer.start(transcript)
    elif transport == "stdio":
        player = await StdioPlayer.start(transcript.target, **constants(own))
    else:
        player = HttpPlayer(http_servers.url(transcript.container_class()), revision)
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await play(transcript.steps(revision, transport), player, WireRules(revision))
            rest = await player.finish()
    except BaseException:
        await player.give_up()
        raise
    assert not rest, f"the server also said {rest}"


async def play(steps: Sequence[Step], player: Player, rules: WireRules) -> None:
    """Play the client's side and compare the server's."""
    bodiless: int | None = None
    values: dict[str, Any] = {}
    for step, following in zip(steps, [*steps[1:], None], strict=True):
        if isinstance(step, Send):
            data = _recall(step.data, values)
            rules.sent(_decoded(data))
            bodiless = await player.send(data)
            if bodiless is not None and not _is_bodiless(following):
                assert bodiless == 202, f"line {step.line}: HTTP status {bodiless}"
        elif isinstance(step, Act):
            await player.do(step)
        elif _is_bodiless(step):
            if isinstance(player, HttpPlayer):
                assert bodiless == step.messages[0].status, f"line {step.line}: HTTP status {bodiless}"
        else:
            await _expect(step, player, rules, values)


async def _expect(step: Expect, player: Player, rules: WireRules, values: dict[str, Any]) -> None:
    received = [await player.receive() for _ in step.messages]
    for one in received:
        rules.check(one.message)
    expected = [replace(one, message=json.loads(recalled(json.dumps(one.message), values))) for one in step.messages]
    if len(received) == 1:
        _compare(expected[0], received[0])
        values.update(kept(expected[0].message, received[0].message))
    else:
        came = [one.message for one in received]
        assert paired([one.message for one in expected], came), f"line {step.line}: got {came}"
        assert all(one.status in (None, 200) for one in received), f"line {step.line}: got {received}"


def _recall(data: bytes, values: Mapping[str, Any]) -> bytes:
    """Replace names with kept values in a message of the client."""
    return recalled(data.decode(), values).encode() if b"<the:" in data else data


def _compare(expected: Expected, received: Received) -> None:
    if not same(expected.message, received.message):
        found = "\n".join(differences(expected.message, received.message))
        pytest.fail(f"line {expected.line}: got {json.dumps(received.message)}\n{found}")
    if received.status is not None:
        assert received.status == (expected.status or 200), f"line {expected.line}: HTTP status {received.status}"


def _is_bodiless(step: Step | None) -> TypeGuard[Expect]:
    return isinstance(step, Expect) and step.messages[0].message is None


def _decoded(data: bytes) -> object:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None
