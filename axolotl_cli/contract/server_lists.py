"""The contract of a running server, as far as its lists show it."""

import asyncio
from typing import Final

import typer

from axolotl_cli.calling.running_server import RunningServer
from axolotl_cli.exit import ExitCode
from axolotl_cli.logs import start_logging
from axolotl_cli.options import RemoteOptions
from axolotl_cli.text import report
from axolotl_core.contract.lock import Lock, make_lock
from axolotl_server.client.client import Client
from axolotl_server.client.replies import RemoteError

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
        lists = {kind: [(one, None) for one in found] for kind, found in (await client.list_all()).items()}
    return make_lock(lists["tools"], lists["prompts"], [*lists["resources"], *lists["templates"]], lists["skills"])
