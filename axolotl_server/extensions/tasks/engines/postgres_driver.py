"""The connections to a Postgres database of tasks, which wait while it is unreachable."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final, TypeVar

import asyncpg  # type: ignore[import-untyped]  # it has no types
from pgqueuer.core.tm import TaskManager
from pgqueuer.ports.driver import Driver

from axolotl_core.task_engine import TasksUnavailable
from axolotl_server.execution.outage_log import OutageLog
from axolotl_server.extensions.tasks.engines.stored_run import DELAYS, until_reached

_CONNECT_SECONDS: Final = 5.0
_STATEMENT_SECONDS: Final = 30.0
_CHECK_SECONDS: Final = 5.0
_CONNECTIONS: Final = 10
_TRANSIENT: Final = ("08", "40", "53", "55P03", "57", "58", "25006")
"""The classes of errors that say nothing about the statement: connection, conflict, resources, shutdown."""

ResultT = TypeVar("ResultT")
Notice = Callable[[str], object]

_log: Final = logging.getLogger("axolotl")


def is_outage(error: BaseException) -> bool:
    """Whether the same statement may succeed later."""
    if isinstance(error, asyncpg.PostgresError):
        return str(error.sqlstate or "").startswith(_TRANSIENT)
    return isinstance(error, OSError | asyncpg.InterfaceError | TimeoutError)


class PostgresConnections:
    """A pool for statements, and one connection that listens; when it breaks, another one is opened at once."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._pool: Any = None
        self._notices: dict[str, list[Notice]] = {}
        self._listener: Any = None
        self._listening: asyncio.Task[None] | None = None
        self._outages = OutageLog("The database of tasks", "interruptions")

    async def open(self) -> None:
        """Connect, or raise what asyncpg raises."""
        self._pool = await asyncpg.create_pool(
            self._url,
            min_size=1,
            max_size=_CONNECTIONS,
            timeout=_CONNECT_SECONDS,
            command_timeout=_STATEMENT_SECONDS,
            server_settings={"application_name": "axolotl"},
            reset=_keep,
        )
        self._listening = asyncio.ensure_future(self._keep_listening())

    async def use(self, work: Callable[[Any], Awaitable[ResultT]]) -> ResultT:
        """Do some work with a connection, or raise TasksUnavailable if there is none."""
        try:
            async with self._pool.acquire(timeout=_CONNECT_SECONDS) as connection:
                result = await work(connection)
        except Exception as error:
            if not is_outage(error):
                raise
            self._outages.failed(type(error).__name__)
            raise TasksUnavailable(f"the database cannot be reached: {type(error).__name__}") from None
        self._outages.recovered()
        return result

    @property
    def listens(self) -> bool:
        """Whether the listening connection is open."""
        return self._listener is not None and not self._listener.is_closed()

    async def listen(self, channel: str, notice: Notice) -> None:
        """Receive the messages of a channel, from now on and after every reconnection."""
        is_new = channel not in self._notices
        self._notices.setdefault(channel, []).append(notice)
        if is_new and self._listener is not None:
            with suppress(OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
                await self._listener.add_listener(channel, self._receive)

    def forget(self, channel: str, notice: Notice) -> None:
        """Stop receiving."""
        if notice in self._notices.get(channel, ()):
            self._notices[channel].remove(notice)

    async def close(self) -> None:
        """Close all connections."""
        if self._listening is not None:
            self._listening.cancel()
            await asyncio.wait((self._listening,))
        if self._pool is not None:
            try:
                await asyncio.wait_for(self._pool.close(), _CONNECT_SECONDS)
            except (TimeoutError, OSError, asyncpg.InterfaceError):
                self._pool.terminate()

    async def _keep_listening(self) -> None:
        delays = iter(DELAYS)
        while True:
            try:
                await self._listen_once()
                delays = iter(DELAYS)
            except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
                self._outages.failed(type(error).__name__)
                await asyncio.sleep(next(delays, DELAYS[-1]))
            finally:
                listener, self._listener = self._listener, None
                if listener is not None:
                    listener.terminate()

    async def _listen_once(self) -> None:
        """Listen until the connection breaks; a connection that breaks silently is found by a regular statement."""
        broken = asyncio.Event()
        self._listener = await asyncpg.connect(
            self._url, timeout=_CONNECT_SECONDS, server_settings={"application_name": "axolotl"}
        )
        self._listener.add_termination_listener(lambda connection: broken.set())
        for channel in tuple(self._notices):
            await self._listener.add_listener(channel, self._receive)
        while not broken.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(broken.wait(), _CHECK_SECONDS)
            if not broken.is_set():
                await self._listener.fetch("select 1", timeout=_CONNECT_SECONDS)

    def _receive(self, connection: object, process: int, channel: str, message: Any) -> None:
        for notice in tuple(self._notices.get(channel, ())):
            notice(message)


class PostgresDriver(Driver):
    """The driver of a queue manager, which accepts no more jobs after an error: so it gets none while it can wait."""

    def __init__(self, connections: PostgresConnections) -> None:
        self._connections = connections
        self._shutdown = asyncio.Event()
        self._listens: list[tuple[str, Notice]] = []

    async def fetch(self, query: str, *args: object) -> list[dict[str, object]]:
        async def work(connection: Any) -> list[dict[str, object]]:
            return [dict(row) for row in await connection.fetch(query, *args)]

        return await until_reached(lambda: self._connections.use(work))

    async def execute(self, query: str, *args: object) -> str:
        async def work(connection: Any) -> str:
            return str(await connection.execute(query, *args))

        return await until_reached(lambda: self._connections.use(work))

    async def notify(self, channel: str, payload: str) -> None:
        await self.execute("select pg_notify($1, $2)", channel, payload)

    async def add_listener(self, channel: str, callback: Callable[[Any], None]) -> None:
        self._listens.append((channel, callback))
        await self._connections.listen(channel, callback)

    @property
    def shutdown(self) -> asyncio.Event:
        return self._shutdown

    @property
    def tm(self) -> TaskManager:
        return TaskManager()

    async def __aenter__(self) -> "PostgresDriver":
        return self

    async def __aexit__(self, *_: object) -> None:
        for channel, callback in self._listens:
            self._connections.forget(channel, callback)


async def _keep(connection: object) -> None:
    """Keep the state of a connection that goes back to the pool: nothing here changes it."""
