"""The address of the client: recorded, limited and logged, also behind proxies."""

import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from dependency_injector import providers

from axolotl_core.errors import ConfigurationError
from axolotl_server import connect
from axolotl_server.access.api_keys import hash_key
from axolotl_server.audit.decisions import RejectionLog
from tests.support.audited_calls import MemorySink, audit_into
from tests.support.peers.wire import INITIALIZE, JSON_HEADERS, call, message, mirrored, raw_exchange, raw_request
from tests.support.servers.authenticated_server import bearer, discover, gated
from tests.support.servers.serving import HttpServer, serving, until
from tests.support.tools import Echo, container_of

KEY = "axk_key-of-a-caller"
AUTH: Any = {"api_keys": {"ada": {"hash": hash_key(KEY)}}}
BEHIND = {"trusted_proxies": ["127.0.0.1", "10.0.0.0/8", "2001:db8:ffff::/48"]}
DIRECT: tuple[tuple[str, str], ...] = ()
OVER_ASGI = (("Origin", "http://localhost"),)
"""A header that keeps a message from being answered directly."""

Pairs = Sequence[tuple[str, str]]


def forwarded_for(*values: str) -> Pairs:
    return [("X-Forwarded-For", value) for value in values]


def forwarded(*values: str) -> Pairs:
    return [("Forwarded", value) for value in values]


async def recorded_address(server: HttpServer, sink: MemorySink, headers: Pairs) -> str | None:
    """Call a tool and return the address in its record."""
    data = raw_request(call("echo", {"text": "x"}), [*mirrored(name="echo").items(), *headers])
    assert (await raw_exchange(server.port, data)).status == 200
    return sink.records[-1].client_address


@pytest.mark.parametrize("path", [DIRECT, OVER_ASGI], ids=["direct", "asgi"])
async def test_addresses_behind_proxies(path: Pairs) -> None:
    """The last address that is not a trusted proxy is the client's; malformed and contradictory reports are ignored."""
    expected: list[tuple[Pairs, str]] = [
        ([], "127.0.0.1"),
        (forwarded_for("192.0.2.1"), "192.0.2.1"),
        (forwarded_for("192.0.2.1:4711"), "192.0.2.1"),
        (forwarded_for("203.0.113.9, 192.0.2.1"), "192.0.2.1"),
        (forwarded_for("203.0.113.9,192.0.2.1 , 10.1.2.3,10.0.0.1"), "192.0.2.1"),
        (forwarded_for("203.0.113.9", "192.0.2.1", "10.0.0.1"), "192.0.2.1"),
        (forwarded_for("10.0.0.2, 10.0.0.1"), "10.0.0.2"),
        (forwarded_for("::ffff:192.0.2.1"), "192.0.2.1"),
        (forwarded_for("[2001:DB8::1]:443"), "2001:db8::1"),
        (forwarded_for("2001:db8::1, 2001:db8:ffff::9"), "2001:db8::1"),
        (forwarded_for("192.0.2.1, unknown"), "127.0.0.1"),
        (forwarded_for("192.0.2.1, evil, 10.0.0.1"), "10.0.0.1"),
        (forwarded_for("192.0.2.1,"), "127.0.0.1"),
        (forwarded_for("fe80::1%eth0"), "127.0.0.1"),
        (forwarded_for("192.0.2.300"), "127.0.0.1"),
        (forwarded_for(", ".join(["192.0.2.1", *["10.0.0.1"] * 30])), "10.0.0.1"),
        (forwarded("for=192.0.2.1"), "192.0.2.1"),
        (forwarded('for=203.0.113.9, For="[2001:db8::1]:4711";proto=https;by=10.0.0.1'), "2001:db8::1"),
        (forwarded('proto=https; for="192.0.2.1"'), "192.0.2.1"),
        (forwarded("for=192.0.2.1, for=_hidden"), "127.0.0.1"),
        (forwarded("proto=https"), "127.0.0.1"),
        (forwarded("for=192.0.2.1;for=192.0.2.2"), "127.0.0.1"),
        (forwarded('for="192.0.2.1, for=192.0.2.2'), "192.0.2.2"),
        ([*forwarded("for=192.0.2.1"), *forwarded_for("192.0.2.1")], "192.0.2.1"),
        ([*forwarded("for=192.0.2.1"), *forwarded_for("192.0.2.2")], "127.0.0.1"),
    ]
    sink = MemorySink()
    settings = {"http": BEHIND}
    async with serving(container_of(Echo()), settings, audit_sinks=[sink]) as server:
        found = [(headers, await recorded_address(server, sink, [*headers, *path])) for headers, _ in expected]
    assert found == expected


@pytest.mark.parametrize("path", [DIRECT, OVER_ASGI], ids=["direct", "asgi"])
async def test_other_clients_cannot_choose_their_address(path: Pairs) -> None:
    """Without trusted proxies, headers are ignored."""
    sink = MemorySink()
    for http in ({}, {"trusted_proxies": ["192.0.2.0/24"]}):
        async with serving(container_of(Echo()), {"http": http}, audit_sinks=[sink]) as server:
            assert await recorded_address(server, sink, [*forwarded_for("192.0.2.7"), *path]) == "127.0.0.1"


async def test_calls_in_memory_have_no_address() -> None:
    """Only HTTP has addresses."""
    sink = MemorySink()
    container = container_of(Echo())
    container.audit_sinks = providers.Object([sink])
    async with connect(container) as client:
        await client.call("echo", {"text": "x"})
    assert {record.client_address for record in sink.records} == {None}


async def test_a_network_that_is_none() -> None:
    """A wrong network is reported with an example."""
    with pytest.raises(ConfigurationError, match=r"http\.trusted_proxies.*write an address or a network, such as"):
        async with connect(container_of(Echo()), settings={"http": {"trusted_proxies": ["10.0.0.1/8"]}}):
            pass


async def test_anonymous_callers_behind_a_proxy() -> None:
    """Anonymous callers behind a trusted proxy have limits per reported address."""
    settings = {"http": BEHIND, "sessions": {"maximum": 10}}
    async with serving(container_of(Echo()), settings) as server:
        statuses = []
        for address in ("192.0.2.1", "192.0.2.1", "192.0.2.2"):
            headers = [*JSON_HEADERS.items(), *forwarded_for(address)]
            data = raw_request(message("initialize", INITIALIZE), headers)
            statuses.append((await raw_exchange(server.port, data)).status)
        assert statuses == [200, 429, 200]


@pytest.mark.parametrize("path", [DIRECT, OVER_ASGI], ids=["direct", "asgi"])
async def test_rejected_tokens_are_recorded(path: Pairs, caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    """A rejected token is an audit event with reason and address, in the log file and the server's log."""
    caplog.set_level(logging.INFO, "axolotl")
    log = tmp_path / "audit.jsonl"
    async with gated(AUTH, http=BEHIND, audit={"jsonl_path": str(log)}) as server:
        for header in (bearer("axk_wrong"), ("Authorization", "Bearer two tokens")):
            refused = await discover(server, header, *forwarded_for(f"192.0.2.{len(header[1])}"), *path)
            assert refused.status in (400, 401)
        assert (await discover(server, *path)).status == 401
        assert (await discover(server, bearer(KEY), *path)).status == 200
        lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    rejected = [(one["client_address"], one["reason"]) for one in lines if one["event"] == "rejected"]
    assert rejected == [
        ("192.0.2.16", "there is no such API key"),
        ("192.0.2.17", "the Authorization header is malformed"),
    ]
    assert "a token from 192.0.2.16 was rejected: there is no such API key" in caplog.messages


async def test_tokens_without_required_scopes() -> None:
    """A valid token that lacks required scopes is recorded with its subject."""
    sink, container = MemorySink(), container_of(Echo())
    settings = {"auth": {**AUTH, "required_scopes": ["mcp", "tools"]}}
    async with serving(container, settings, audit_sinks=[sink]) as server:
        assert (await discover(server, bearer(KEY))).status == 403
    [record] = sink.records
    assert (record.event, record.subject, record.client_address) == ("rejected", "ada", "127.0.0.1")
    assert record.reason == "the token lacks the scopes mcp tools"


async def test_a_flood_of_wrong_tokens_makes_few_records(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each address has one record at once and one with a number later; further addresses are counted together."""
    sink, container = MemorySink(), container_of(Echo())
    monkeypatch.setattr("axolotl_server.audit.audit.MAX_REJECTIONS_PER_MINUTE", 2)
    settings = {"auth": AUTH, "http": BEHIND}
    async with serving(container, settings, audit_sinks=[sink]) as server:
        for number in (1, 2, 1, 3, 1, 4, 3):
            await discover(server, bearer("axk_wrong"), *forwarded_for(f"192.0.2.{number}"))
        at_once = [(record.client_address, record.repeated) for record in sink.records]
    assert at_once == [("192.0.2.1", None), ("192.0.2.2", None)]
    assert [(record.client_address, record.repeated) for record in sink.records[2:]] == [("192.0.2.1", 2), (None, 3)]
    assert {record.event for record in sink.records} == {"rejected"}


async def test_counted_rejections_are_recorded_after_a_minute() -> None:
    """At the end of the window, numbers are recorded, and an address is recorded at once again."""
    sink = MemorySink()
    rejections = RejectionLog(audit_into(sink).trail, 10, window_seconds=0.01)
    for reason in ("wrong", "late", "later"):
        rejections.add("192.0.2.1", reason)
    await until(lambda: len(sink.records) == 2)
    rejections.add("192.0.2.1", "wrong again")
    rejections.flush()
    assert [(one.reason, one.repeated) for one in sink.records] == [
        ("wrong", None),
        ("later", 2),
        ("wrong again", None),
    ]
