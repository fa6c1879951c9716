"""The surroundings of a call that has left its request behind."""

import asyncio
import copy
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final

import msgspec

from axolotl_core.errors import ProtocolError
from axolotl_core.protocol.identity import Principal
from axolotl_core.protocol.wire import encode
from axolotl_server.eras.asking import IAsking
from axolotl_server.failures import hide_internal
from axolotl_server.peer import Connection, IExchange, IStoppable
from axolotl_server.request import Request
from axolotl_server.tasks.task import Task

__all__ = ["RELATED_TASK_KEY", "DetachedExchange", "detach"]

RELATED_TASK_KEY: Final = "io.modelcontextprotocol/related-task"
_MOST_WAITING: Final = 100


class DetachedExchange:
    """The way back of a call that runs as a task.

    What the call says goes where its caller can be reached: along with a request that waits for the result, else on
    the connection. Questions over HTTP wait for such a request, because the connection may have nobody listening.
    """

    headers: Mapping[bytes, bytes] | None = None
    status = 200

    def __init__(self, task: Task, original: IExchange, speak: bool) -> None:
        self.loop = original.loop
        self.principal: Principal = original.principal
        self._task = task
        self._speaks = speak
        self._shares_stream = original.headers is None
        self._waiting: list[bytes] = []
        self._listener: IExchange | None = None
        self._connection: Connection | None = None

    def attach(self, listener: IExchange | None) -> None:
        """Speak along with a request that waits for the result; None ends that."""
        self._listener = listener
        if listener is not None:
            waiting, self._waiting = self._waiting, []
            for message in waiting:
                listener.notify(message)

    def bind(self, connection: Connection) -> None:
        """Speak on a connection while nobody waits."""
        self._connection = connection

    def connection(self) -> Connection:
        """Give the connection that the task was begun on."""
        assert self._connection is not None
        return self._connection

    def open_connection(self) -> Connection:
        """Never happens: a task begins no handshake."""
        raise NotImplementedError

    def notify(self, message: bytes) -> bool:
        """Say something that belongs to the task."""
        if not self._speaks:
            return True
        content = msgspec.json.decode(message)
        content.setdefault("params", {}).setdefault("_meta", {})[RELATED_TASK_KEY] = {"taskId": self._task.id}
        self._say(encode(content), lasting="id" in content)
        return True

    def watch(self, running: IStoppable) -> None:
        """Do nothing: a task does not end with a connection."""

    def hang_up(self) -> None:
        """Do nothing: nobody holds a line."""

    def _say(self, message: bytes, *, lasting: bool) -> None:
        if self._listener is not None:
            self._listener.notify(message)
        elif self._connection is not None and (self._shares_stream or not lasting):
            self._connection.send(message)
        elif len(self._waiting) < _MOST_WAITING:
            self._waiting.append(message)


def detach(
    request: Request, task: Task, exchange: DetachedExchange, *, asking: IAsking, run: "Run", finish: "Finish"
) -> None:
    """Let a request run on its own, as a task."""
    connection = copy.copy(request.connection) if request.connection is not None else Connection(_drop)
    connection.calls = task.calls
    if request.connection is not None:
        exchange.bind(request.connection)
    detached = Request(request.head, request.data, request.era, exchange, connection, asking=asking)
    task.work = request.exchange.loop.create_task(_work(task, detached, run, finish))


Run = Callable[[Request], Coroutine[Any, Any, bytes | None]]
Finish = Callable[[Task, bytes], None]


async def _work(task: Task, request: Request, run: Run, finish: Finish) -> None:
    try:
        result = await run(request)
        if result is None:
            task.end("cancelled")
        else:
            finish(task, result)
    except ProtocolError as error:
        task.end("failed", error=error, message=error.message)
    except asyncio.CancelledError:
        task.end("cancelled")
        raise
    except Exception as error:
        hidden = hide_internal(error, request.head.method)
        task.end("failed", error=hidden, message=hidden.message)


def _drop(message: bytes) -> None:
    """Say nothing to a caller that keeps no connection."""
