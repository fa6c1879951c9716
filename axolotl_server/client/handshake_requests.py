"""Requests of a connection with a handshake, on which the server asks by requests of its own."""

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

from axolotl_core.protocol import codes
from axolotl_core.protocol.messages import LOG_LEVEL_KEY
from axolotl_core.protocol.versions import HANDSHAKE_REVISIONS, LATEST_HANDSHAKE_REVISION, Revision
from axolotl_core.questions.question import KEYS
from axolotl_server.client.channel import IChannel, Inbox, InvalidReply, Message
from axolotl_server.client.replies import (
    Answering,
    Question,
    RemoteError,
    ServerDescription,
    TaskCancelled,
    UnansweredQuestion,
    answer_to,
)
from axolotl_server.client.requests import MAX_ROUNDS, SILENT, Listeners, Listening, Received, Requests, task_id_in
from axolotl_server.protocol.flow_control import MAX_WAITING
from axolotl_server.protocol.subscriptions import Listable

_URL_REQUIRED: Final = -32042
"""The server answers a request with pages that the user has to open first."""


class HandshakeRequests(Requests):
    """Requests of a revision that begins with `initialize`; the first request does that."""

    def __init__(
        self,
        channel: IChannel,
        answer: Answering | None,
        capabilities: Mapping[str, Any] | None,
        revision: Revision | None = None,
    ) -> None:
        """Prepare a connection; without a revision, the server may choose an older one than the latest."""
        super().__init__(channel, revision or LATEST_HANDSHAKE_REVISION, answer, capabilities)
        self._may_be_older = revision is None
        self._description: ServerDescription | None = None
        self._starting = asyncio.Lock()
        self._log_level: str | None = None
        self._asked = dict.fromkeys(KEYS, 0)
        self._listeners: list[_Changes] = []
        self._replies: set[asyncio.Future[None]] = set()

    async def describe(self) -> ServerDescription:
        async with self._starting:
            if self._description is None:
                self._description = await self._initialize()
            return self._description

    async def finish(self, method: str, params: Mapping[str, Any], heard: Listeners) -> Any:
        await self.describe()
        for _ in range(MAX_ROUNDS):
            try:
                return await self.send(method, params, heard)
            except RemoteError as error:
                if error.code != _URL_REQUIRED or not await self._open_pages(error):
                    raise
        raise UnansweredQuestion(f"The server still asks for pages after {MAX_ROUNDS} rounds", ())

    async def run(self, method: str, params: Mapping[str, Any], heard: Listeners) -> Any:
        try:
            result = await self.finish(method, params, heard)
        except RemoteError as error:
            # The tool may exist only as a task. If it does not exist at all, the second request says so.
            if error.code != codes.METHOD_NOT_FOUND or method != "tools/call" or not await self._has_tasks():
                raise
            try:
                result = await self.finish(method, {**params, "task": {}}, heard)
            except RemoteError:
                raise error from None
        task_id = task_id_in(result)
        return result if task_id is None else await self.follow_or_cancel(task_id, heard)

    async def follow(self, task_id: str, heard: Listeners = SILENT) -> Any:
        try:
            return await self.finish("tasks/result", {"taskId": task_id}, Listeners(heard.progress))
        except RemoteError:
            with suppress(RemoteError):
                task = await self.send("tasks/get", {"taskId": task_id})
                if task.get("status") == "cancelled":
                    raise TaskCancelled(task.get("statusMessage", "The task was cancelled")) from None
            raise

    @asynccontextmanager
    async def listen(self, uris: Collection[str], lists: Collection[Listable]) -> AsyncIterator[Listening]:
        offered = (await self.describe()).capabilities
        accepted: dict[str, Any] = {
            f"{kind}ListChanged": True for kind in lists if (offered.get(kind) or {}).get("listChanged")
        }
        await self._channel.listen()
        inbox = _Changes({f"notifications/{kind}/list_changed" for kind in lists}, uris)
        self._listeners.append(inbox)
        try:
            for uri in uris:
                await self.send("resources/subscribe", {"uri": uri})
            if uris:
                accepted["resourceSubscriptions"] = list(uris)
            yield Listening(inbox.next, accepted)
        finally:
            self._listeners.remove(inbox)
            with suppress(ConnectionError, RemoteError):
                for uri in uris:
                    await self.send("resources/unsubscribe", {"uri": uri})
            inbox.put(None)

    async def close(self) -> None:
        await super().close()
        for inbox in self._listeners:
            inbox.put(None)

    async def _initialize(self) -> ServerDescription:
        from importlib.metadata import version

        params = {
            "protocolVersion": self.revision.name,
            "capabilities": self._capabilities,
            "clientInfo": {"name": "axolotl", "version": version("axolotl-mcp")},
        }
        result = await self.send("initialize", params)
        name, known = result.get("protocolVersion"), {revision.name: revision for revision in HANDSHAKE_REVISIONS}
        if name != self.revision.name and not (self._may_be_older and name in known):
            raise InvalidReply(f"The server speaks the revision {name!r} instead of {self.revision.name!r}")
        self.revision = known[name]
        self._channel.use(self.revision)
        await self._channel.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        if self._capabilities:  # the server may ask outside of the stream of a request
            await self._channel.listen()
        return ServerDescription.of(self.revision.name, result.get("serverInfo") or {}, result)

    async def _has_tasks(self) -> bool:
        offered = (await self.describe()).capabilities
        requests = (offered.get("tasks") or {}).get("requests") or {}
        return self.revision.tasks and "call" in (requests.get("tools") or {})

    async def _open_pages(self, error: RemoteError) -> bool:
        """Ask the user to open the pages that a request needs; return whether to try again."""
        pages = error.data.get("elicitations") if isinstance(error.data, dict) else None
        if self._answer is None or not isinstance(pages, list) or not pages:
            return False
        for page in pages:
            answer = await self._ask("elicitation/create", page)
            if answer.get("action") != "accept":
                return False
        return True

    async def _reply(self, received: Received) -> None:
        reply: Message = {"jsonrpc": "2.0", "id": received.id}
        if received.method == "ping":
            reply["result"] = {}
        elif received.method in KEYS and self._capabilities:
            reply["result"] = await self._ask(received.method, received.params)
        else:
            reply["error"] = {"code": codes.METHOD_NOT_FOUND, "message": f"The client has no {received.method}"}
        await self._channel.send(reply)

    async def _ask(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        self._asked[method] += 1
        key = f"{KEYS[method]}-{self._asked[method]}"
        if self._answer is None:
            problem = "The server asks, but the client has no answer: pass one to connect()"
            raise UnansweredQuestion(f"{problem}. Unanswered: {key}", [key])
        return await answer_to(Question(key, method, params), self._answer)

    async def _meta(self, own: Mapping[str, Any] | None, *, hears_log: bool) -> dict[str, Any]:
        meta = {**(own or {})}
        level = meta.pop(LOG_LEVEL_KEY, "debug") if hears_log else self._log_level
        if self._log_level != level and self._description and "logging" in self._description.capabilities:
            self._log_level = level
            await self.send("logging/setLevel", {"level": level})
        return meta

    def _hand_out(self, message: Message) -> None:
        """Give a question to the oldest open request, a change to all listeners, and all else to all requests."""
        if "id" not in message:
            for inbox in self._listeners:
                inbox.put(message)
            super()._hand_out(message)
            return
        waiting = next((one for one in self._open.values() if not one.inbox.is_complete), None)
        if waiting is not None:
            waiting.inbox.put(message)
            return
        if len(self._replies) >= MAX_WAITING:
            return  # the server asks faster than it takes answers
        replying = asyncio.ensure_future(self._refuse(Received(message["method"], {}, message["id"])))
        self._replies.add(replying)
        replying.add_done_callback(self._replies.discard)

    async def _refuse(self, received: Received) -> None:
        """Answer a request of the server that came while the client waits for nothing."""
        with suppress(ConnectionError):
            if received.method == "ping":
                await self._reply(received)
            else:
                error = {"code": codes.INVALID_REQUEST, "message": "The client waits for no answer of the server"}
                await self._channel.send({"jsonrpc": "2.0", "id": received.id, "error": error})


class _Changes(Inbox):
    """The changes that were asked for; other notifications take no room."""

    def __init__(self, methods: Collection[str], uris: Collection[str]) -> None:
        super().__init__()
        self._methods = methods
        self._uris = uris

    def put(self, message: Message | Exception | None) -> None:
        if isinstance(message, dict):
            uri = (message.get("params") or {}).get("uri")
            if message["method"] != "notifications/resources/updated":
                is_wanted = message["method"] in self._methods
            else:  # of the resource itself, or of one below it
                is_wanted = any(f"{uri}/".startswith(f"{watched.rstrip('/')}/") for watched in self._uris)
            if not is_wanted:
                return
        super().put(message)

    async def next(self) -> Received | None:
        """Wait for the next change; None if the client was closed."""
        message = await self.take()
        return Received(message["method"], message.get("params") or {}) if isinstance(message, dict) else None
