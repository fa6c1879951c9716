"""A running server at a URL, in place of a container."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple, TypeVar

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


class RunningServer(NamedTuple):
    """The address of a server, the token for it, and the revision to speak, if not the latest."""

    url: str
    token: str | None = None
    revision: str | None = None

    @classmethod
    def of(cls, options: RemoteOptions) -> "RunningServer":
        """Read the token from its variable; raises a ConfigurationError if that is not set."""
        assert options.url is not None
        token = None
        if options.token_env is not None:
            token = os.environ.get(options.token_env)
            if not token:
                raise ConfigurationError(f"The environment variable {options.token_env} of --token-env is not set")
        return cls(options.url, token, options.revision)

    def use(
        self,
        work: Callable[[Client], Awaitable[T]],
        answer: Answering | None = None,
        *,
        within_seconds: float | None = None,
    ) -> T:
        """Connect and do some work; if the server does not answer in time, print the reason and exit."""
        try:
            return run(self._use(work, answer, within_seconds))
        except ConnectionError as error:
            report(str(error))
            if isinstance(error, HttpStatusError) and error.status == 401:
                typer.secho(_MISSING if self.token is None else _REJECTED, fg="yellow", err=True)
            raise typer.Exit(ExitCode.UNREACHABLE) from None

    async def _use(
        self, work: Callable[[Client], Awaitable[T]], answer: Answering | None, within_seconds: float | None
    ) -> T:
        try:
            async with asyncio.timeout(within_seconds) as deadline:
                return await self._connect(work, answer)
        except TimeoutError:
            if deadline.expired():
                raise ConnectionError(f"{self.url} gave no answer in time") from None
            raise

    async def _connect(self, work: Callable[[Client], Awaitable[T]], answer: Answering | None) -> T:
        connection = connect_url(self.url, token=self.token, revision=self.revision, answer=answer)
        try:
            client = await connection.__aenter__()
        except ValueError as error:
            raise ConfigurationError(str(error)) from None
        except RemoteError as error:
            raise ConnectionError(f"The server refuses the connection: {error.message} ({error.code})") from None
        try:
            return await work(client)
        finally:
            await connection.__aexit__(None, None, None)
