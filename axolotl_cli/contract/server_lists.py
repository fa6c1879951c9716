"""The contract of a running server, as far as its lists show it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

import typer

from axolotl_cli.calling.running_server import RunningServer
from axolotl_cli.exit import ExitCode
from axolotl_cli.logs import start_logging
from axolotl_cli.options import RemoteOptions
from axolotl_cli.text import report
from axolotl_core.contract.lock import Lock, make_lock
from axolotl_server.client.client import Client
from axolotl_server.client.outcomes import RemoteError
from axolotl_server.methods.lifecycle import SKILLS_EXTENSION

_MAX_PAGES: Final = 1000
_SECONDS: Final = 60.0
"""How long reading the lists of a server may take."""


def lock_of_server(url: str, token_variable: str | None) -> Lock:
    """Read the lists of a server.

    Raises ConfigurationError if something on the command line is not usable, and ends the command if the server does
    not answer.
    """
    server = RunningServer.of(RemoteOptions(url, token_variable))
    start_logging("warning")
    try:
        return server.use(_read)
    except (RemoteError, TimeoutError) as error:
        reason = f"it did not answer within {_SECONDS:g} seconds" if isinstance(error, TimeoutError) else str(error)
        report(f"The contract of {url} cannot be read: {reason}")
        raise typer.Exit(ExitCode.UNREACHABLE) from None


async def _read(client: Client) -> Lock:
    async with asyncio.timeout(_SECONDS):
        capabilities = (await client.describe()).capabilities

        async def listed(kind: str, read: Callable[[], Awaitable[list[dict[str, Any]]]]) -> list[Any]:
            return [(one, None) for one in await read()] if kind in capabilities else []

        resources = await listed("resources", client.list_resources)
        templates = await listed("resources", client.list_resource_templates)
        prompts = await listed("prompts", client.list_prompts)
        has_skills = SKILLS_EXTENSION in capabilities.get("extensions", {})
        skills = [(one, None) for one in await _skills(client)] if has_skills else []
        return make_lock(await listed("tools", client.list_tools), prompts, [*resources, *templates], skills)


async def _skills(client: Client) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    params: dict[str, Any] = {}
    for _ in range(_MAX_PAGES):
        page = await client.request("skills/list", params)
        found += page["skills"]
        if "nextCursor" not in page:
            break
        params = {"cursor": page["nextCursor"]}
    return found
