"""The thirteen tests of the requirement document, over the wire, in every revision with a handshake."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from axolotl_core.protocol import codes
from axolotl_core.protocol.versions import HANDSHAKE_REVISIONS, Revision
from axolotl_examples.three_good_sources import Container
from tests.examples.three_good_sources.session import Session, open_session

TOOLS = ["get_sources", "list_categories", "get_provenance", "get_endorsements"]
WITH_ERROR_CODES = [revision for revision in HANDSHAKE_REVISIONS if not revision.argument_errors_as_results]


@pytest.fixture(params=HANDSHAKE_REVISIONS, ids=lambda revision: revision.name)
async def session(request: pytest.FixtureRequest) -> AsyncIterator[Session]:
    revision: Revision = request.param
    async with open_session(revision) as opened:
        yield opened


in_revisions_with_error_codes = pytest.mark.parametrize(
    "session", WITH_ERROR_CODES, indirect=True, ids=lambda revision: revision.name
)


def text_of(result: Any) -> str:
    [block] = result["content"]
    assert block["type"] == "text"
    return str(block["text"])


async def test_tools_list_returns_four_tools(session: Session) -> None:
    """There are four tools, each with a description."""
    tools = (await session.request("tools/list"))["result"]["tools"]
    assert [tool["name"] for tool in tools] == TOOLS
    assert all(len(tool["description"]) > 100 for tool in tools)


async def test_tools_list_has_input_schemas(session: Session) -> None:
    """Every input schema is an object that allows no unknown properties."""
    tools = (await session.request("tools/list"))["result"]["tools"]
    schemas = {tool["name"]: tool["inputSchema"] for tool in tools}
    assert all(schema["type"] == "object" for schema in schemas.values())
    assert all(schema["additionalProperties"] is False for schema in schemas.values())
    assert schemas["get_sources"]["required"] == ["query"]
    assert set(schemas["get_sources"]["properties"]) == {"query", "threshold"}
    assert not any(schemas[name]["properties"] for name in TOOLS[1:])


async def test_get_sources_success(session: Session) -> None:
    """A query returns its category and three sources."""
    result = await session.call("get_sources", {"query": "learn rust"})
    text = text_of(result)
    assert result["isError"] is False
    assert "Rust Learning" in text
    assert text.count("URL: https://") == 3
    assert all(f"\n{rank}. " in text for rank in (1, 2, 3))


async def test_get_sources_includes_registry_metadata(session: Session) -> None:
    """The result includes the version and the curator of the registry."""
    registry = Container().sources()
    text = text_of(await session.call("get_sources", {"query": "learn rust"}))
    assert f"Registry Version: {registry.version}\n" in text
    assert f"Curator: John Turner ({registry.curator.pubkey})\n" in text


@pytest.mark.parametrize("query", ["quantum physics", "quantum physics supercollider"])
async def test_get_sources_no_match(session: Session, query: str) -> None:
    """An unrelated query is an error that lists the categories."""
    result = await session.call("get_sources", {"query": query})
    text = text_of(result)
    assert result["isError"] is True
    assert text.startswith(f"No matching category found for query '{query}'. Closest match: ")
    assert all(category.slug in text for category in Container().sources().categories)


@pytest.mark.parametrize("query", ["", "   ", "?!"])
async def test_get_sources_empty_query(session: Session, query: str) -> None:
    """An empty query is an error with an explanation."""
    result = await session.call("get_sources", {"query": query})
    assert result["isError"] is True
    assert text_of(result) == (
        "Query cannot be empty. Provide a natural language query describing what sources you need."
    )


async def test_get_sources_custom_threshold(session: Session) -> None:
    """A call can set its own threshold."""
    result = await session.call("get_sources", {"query": "learn rust", "threshold": 0.9})
    assert result["isError"] is True
    assert "Closest match: rust-learning (score: 0.8" in text_of(result)


async def test_list_categories_returns_all(session: Session) -> None:
    """All ten categories are listed with slug and name."""
    result = await session.call("list_categories", {})
    text = text_of(result)
    categories = Container().sources().categories
    assert result["isError"] is False
    assert text.startswith("Categories (10):\n")
    assert len(categories) == 10
    assert all(f"- {category.slug}: {category.name}\n" in text for category in categories)


async def test_get_provenance_returns_curator(session: Session) -> None:
    """The provenance names the curator and the version."""
    result = await session.call("get_provenance")
    assert result["isError"] is False
    assert text_of(result).startswith("Curator: John Turner\n")
    assert f"Registry Version: {Container().sources().version}\n" in text_of(result)


async def test_get_endorsements_empty_v1(session: Session) -> None:
    """There are no endorsements yet, and the result says so."""
    result = await session.call("get_endorsements")
    assert result["isError"] is False
    assert text_of(result).startswith("Endorsements: 0\n\nThis registry does not yet have any endorsements.")


async def test_unknown_tool_returns_error(session: Session) -> None:
    """An unknown tool is an unknown method."""
    assert (await session.refused("unknown_tool", {}))["code"] == codes.METHOD_NOT_FOUND


@in_revisions_with_error_codes
async def test_invalid_tool_params(session: Session) -> None:
    """An unknown argument is rejected."""
    error = await session.refused("get_sources", {"query": "learn rust", "limit": 5})
    assert error["code"] == codes.INVALID_PARAMS
    assert "limit" in error["message"]


@in_revisions_with_error_codes
@pytest.mark.parametrize("arguments", [None, {}])
async def test_get_sources_missing_query(session: Session, arguments: dict[str, Any] | None) -> None:
    """A query is required."""
    error = await session.refused("get_sources", arguments)
    assert error["code"] == codes.INVALID_PARAMS
    assert "query" in error["message"]
