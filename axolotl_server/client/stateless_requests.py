"""Requests without a handshake: each contains its revision, and questions are answered in rounds."""

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

from axolotl_core.protocol import codes
from axolotl_core.protocol.messages import CLIENT_CAPABILITIES_KEY, LOG_LEVEL_KEY, PROTOCOL_VERSION_KEY, SERVER_INFO_KEY
from axolotl_core.protocol.versions import LATEST_STATELESS_REVISION, Revision
from axolotl_core.task_engine import TASKS_EXTENSION
from axolotl_server.client.channel import IChannel, InvalidReply, Message
from axolotl_server.client.replies import Answering, RemoteError, ServerDescription, TaskCancelled, answers_to
from axolotl_server.client.requests import (
    MAX_PAGES,
    MAX_ROUNDS,
    SILENT,
    Conversation,
    Listeners,
    Listening,
    Received,
    Requests,
    is_asking,
    task_id_in,
    unanswered,
)
from axolotl_server.protocol.subscriptions import Listable

_POLL_SECONDS: Final = 1.0
_MIN_POLL_SECONDS: Final = 0.02
_MAX_POLL_SECONDS: Final = 60.0


class StatelessRequests(Requests):
    """Requests of a stateless revision."""

    def __init__(
        self,
        channel: IChannel,
        answer: Answering | None,
        capabilities: Mapping[str, Any] | None,
        revision: Revision = LATEST_STATELESS_REVISION,
    ) -> None:
        super().__init__(channel, revision, answer, capabilities)
        channel.use(revision)

    async def describe(self) -> ServerDescription:
        result = await self.send("server/discover", {})
        info = result.get("_meta", {}).get(SERVER_INFO_KEY, {})
        return ServerDescription.of(self.revision.name, info, result)

    async def finish(self, method: str, params: Mapping[str, Any], heard: Listeners) -> Any:
        try:
            result = await self.send(method, params, heard)
        except RemoteError as error:
            if error.code != codes.HEADER_MISMATCH or method != "tools/call":
                raise
            await self._learn_tools()
            result = await self.send(method, params, heard)
        rounds = 0
        given: dict[str, Any] = {}
        while self._answer is not None and is_asking(result):
            rounds += 1
            if rounds > MAX_ROUNDS:
                problem = f"The server still asks after {MAX_ROUNDS} rounds, as it does after wrong answers"
                raise unanswered(problem, result, given.get("inputResponses", {}))
            given = await answers_to(result, self._answer)
            result = await self.send(method, {**params, **given}, heard)
        return result

    async def run(self, method: str, params: Mapping[str, Any], heard: Listeners) -> Any:
        """A task reports nothing while it runs, so the extension is declared only if the server requires it."""
        try:
            result = await self.finish(method, params, heard)
        except RemoteError as error:
            if not _requires_tasks(error):
                raise
            extensions = {**self._capabilities.get("extensions", {}), TASKS_EXTENSION: {}}
            self._capabilities = {**self._capabilities, "extensions": extensions}
            result = await self.finish(method, params, heard)
        task_id = task_id_in(result)
        return result if task_id is None else await self.follow_or_cancel(task_id)

    async def follow(self, task_id: str, heard: Listeners = SILENT) -> Any:
        async with self.conversation() as conversation:
            accepted: Mapping[str, Any] = {}
            with suppress(RemoteError):  # the server has no such subscriptions
                accepted = await self._subscribe(conversation, {"taskIds": [task_id]})
            is_notified = task_id in accepted.get("taskIds", ())
            task = await self.send("tasks/get", {"taskId": task_id})
            answered: set[str] = set()
            while task["status"] in ("working", "input_required"):
                await self._update(task, answered)
                if is_notified:
                    received = await conversation.receive()
                    if received is None:
                        raise ConnectionError("The server stopped before the task ended")
                    task = received.params
                else:
                    await asyncio.sleep(_poll_seconds(task))
                    task = await self.send("tasks/get", {"taskId": task_id})
        if "error" in task:
            raise RemoteError(task["error"]["code"], task["error"]["message"], task["error"].get("data"))
        if "result" not in task:
            raise TaskCancelled(task.get("statusMessage", "The task was cancelled"))
        return task["result"]

    @asynccontextmanager
    async def listen(self, uris: Collection[str], lists: Collection[Listable]) -> AsyncIterator[Listening]:
        wanted: dict[str, Any] = {f"{kind}ListChanged": True for kind in lists}
        if uris:
            wanted["resourceSubscriptions"] = uris
        async with self.conversation() as conversation:
            yield Listening(conversation.receive, await self._subscribe(conversation, wanted))

    async def send(self, method: str, params: Mapping[str, Any], heard: Listeners = SILENT) -> Any:
        result = await super().send(method, params, heard)
        if method == "tools/list":
            self._channel.learn(result.get("tools", []))
        return result

    async def _learn_tools(self) -> None:
        """List the tools, whose schemas say which arguments are repeated in headers."""
        params: dict[str, Any] = {}
        for _ in range(MAX_PAGES):
            result = await self.send("tools/list", params)
            if "nextCursor" not in result:
                return
            params = {"cursor": result["nextCursor"]}

    async def _subscribe(self, conversation: Conversation, wanted: Mapping[str, Any]) -> Mapping[str, Any]:
        """Subscribe to notifications, and return which of them the server will send."""
        conversation.begin(
            "subscriptions/listen", {"notifications": wanted, "_meta": await self._meta(None, hears_log=False)}
        )
        acknowledged = await conversation.receive()
        accepted: Mapping[str, Any] = {} if acknowledged is None else acknowledged.params.get("notifications", {})
        return accepted

    async def _update(self, task: Mapping[str, Any], answered: set[str]) -> None:
        unanswered_ones = {key: asked for key, asked in task.get("inputRequests", {}).items() if key not in answered}
        if not unanswered_ones:
            return
        asking = {"inputRequests": unanswered_ones}
        if self._answer is None:
            raise unanswered("The task asks, but the client has no answer: pass one to connect()", asking)
        answered.update(unanswered_ones)
        responses = await answers_to(asking, self._answer)
        await self.send("tasks/update", {"taskId": task["taskId"], **responses})

    async def _meta(self, own: Mapping[str, Any] | None, *, hears_log: bool) -> dict[str, Any]:
        level = {LOG_LEVEL_KEY: "debug"} if hears_log else {}
        client = {PROTOCOL_VERSION_KEY: self.revision.name, CLIENT_CAPABILITIES_KEY: self._capabilities}
        return {**client, **level, **(own or {})}

    async def _reply(self, received: Received) -> None:
        raise InvalidReply(f"The server sent the request {received.method}, which stateless revisions do not have")

    def _hand_out(self, message: Message) -> None:
        if "id" not in message:  # a stateless server asks nothing
            super()._hand_out(message)


def _requires_tasks(error: RemoteError) -> bool:
    if error.code != codes.MISSING_CAPABILITY or not isinstance(error.data, dict):
        return False
    required = error.data.get("requiredCapabilities")
    return isinstance(required, dict) and TASKS_EXTENSION in (required.get("extensions") or {})


def _poll_seconds(task: Mapping[str, Any]) -> float:
    """Return how long to wait before the next look at a task, as the server asks for it."""
    interval = task.get("pollIntervalMs")
    seconds = interval / 1000 if isinstance(interval, int | float) else _POLL_SECONDS
    return min(max(seconds, _MIN_POLL_SECONDS), _MAX_POLL_SECONDS)
