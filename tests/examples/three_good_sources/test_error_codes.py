"""Responses to invalid requests, by revision."""

from typing import Any

import pytest

from axolotl_core.protocol import codes
from axolotl_core.protocol.versions import HANDSHAKE_REVISIONS, LATEST_HANDSHAKE_REVISION, Revision
from axolotl_server import InProcessClient, RemoteError
from tests.examples.three_good_sources.session import open_session

EARLIER = [revision for revision in HANDSHAKE_REVISIONS if not revision.argument_errors_as_results]
WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("get_sources", {}, "query"),
    ("get_sources", {"query": 5}, "query"),
    ("get_sources", {"query": None}, "query"),
    ("get_sources", {"query": "x" * 4001}, "query"),
    ("get_sources", {"query": "rust", "threshold": "high"}, "threshold"),
    ("get_sources", {"query": "rust", "threshold": 1.1}, "threshold"),
    ("get_sources", {"query": "rust", "threshold": -0.1}, "threshold"),
    ("get_sources", {"query": "rust", "extra": 1}, "extra"),
    ("list_categories", {"extra": 1}, "extra"),
    ("get_provenance", {"extra": 1}, "extra"),
    ("get_endorsements", {"extra": 1}, "extra"),
]
"""A tool, invalid arguments, and the argument that the error must name."""


@pytest.mark.parametrize("revision", EARLIER, ids=lambda revision: revision.name)
async def test_earlier_revisions(revision: Revision) -> None:
    """Invalid arguments are a JSON-RPC error that names them."""
    async with open_session(revision) as session:
        for tool, arguments, named in WRONG:
            error = await session.refused(tool, arguments)
            assert error["code"] == codes.INVALID_PARAMS
            assert named in error["message"]


async def test_latest_handshake() -> None:
    """Since 2025-11-25, invalid arguments are a result for the model."""
    async with open_session(LATEST_HANDSHAKE_REVISION) as session:
        for tool, arguments, named in WRONG:
            result = await session.call(tool, arguments)
            assert result["isError"] is True
            assert named in result["content"][0]["text"]


@pytest.mark.parametrize("revision", HANDSHAKE_REVISIONS, ids=lambda revision: revision.name)
async def test_setting(revision: Revision) -> None:
    """A setting selects the JSON-RPC error for all revisions."""
    async with open_session(revision, protocol={"invalid_arguments": "error"}) as session:
        assert (await session.refused("get_sources", {}))["code"] == codes.INVALID_PARAMS


async def test_stateless(client: InProcessClient) -> None:
    """In 2026-07-28, an unknown tool is an error for invalid params, and invalid arguments are a result."""
    with pytest.raises(RemoteError) as refused:
        await client.call("unknown_tool")
    assert refused.value.code == codes.INVALID_PARAMS
    assert (await client.call("get_sources", {"query": 5})).is_error
