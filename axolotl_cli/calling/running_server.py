"""A running server at a URL, in place of a container."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Final, TypeVar

import typer

from axolotl_cli.exit import ExitCode
from axolotl_cli.options import RemoteOptions
from axolotl_cli.runtime import run
from axolotl_cli.text import report
from axolotl_core.errors import ConfigurationError
from axolotl_server.client.client import Client
from axolotl_server.client.connecting import connect_url
from axolotl_server.client.http_channel import HttpStatusError
from axolotl_server.client.replies import Answering, RemoteError

T = TypeVar("T")

_MISSING: Final = "Name the variable with the token: --token-env NAME"
_REJECTED: Final = "Find out why, in the project of the server: axolotl auth doctor --token-env NAME"


def use_server(
    options: RemoteOptions,
    work: Callable[[Client], Awaitable[T]],
    answer: Answering | None = None,
    *,
    within_seconds: float | None = None,
) -> T:
    """Connect and do some work; if the server does not answer in time, print the reason and exit.

    Raises a ConfigurationError if the variable with the token is not set.
    """
    url, variable = options.url or "", options.token_env
    token = None if variable is None else os.environ.get(variable)
    if variable is not None and not token:
        raise ConfigurationError(f"The environment variable {variable} of --token-env is not set")

    async def work_in_time() -> T:
        connection = connect_url(url, token=token, revision=options.revision, answer=answer)
        try:
            async with asyncio.timeout(within_seconds) as deadline, AsyncExitStack() as stack:
                try:
                    client = await stack.enter_async_context(connection)
                except ValueError as error:
                    raise ConfigurationError(str(error)) from None
                except RemoteError as error:
                    problem = f"The server refuses the connection: {error.message} ({error.code})"
                    raise ConnectionError(problem) from None
                return await work(client)
        except TimeoutError:
            if deadline.expired():
                raise ConnectionError(f"{url} gave no answer in time") from None
            raise

    try:
        return run(work_in_time())
    except ConnectionError as error:
        report(str(error))
        if isinstance(error, HttpStatusError) and error.status == 401:
            typer.secho(_MISSING if token is None else _REJECTED, fg="yellow", err=True)
        raise typer.Exit(ExitCode.UNREACHABLE) from None
