"""The in-process client: talks to a server without a network, through everything but the transport."""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from dependency_injector import containers

from axolotl_core.features.completion import Completion
from axolotl_core.protocol.identity import ANONYMOUS, Principal
from axolotl_server.client.outcomes import (
    EVERYTHING,
    Answering,
    CallOutcome,
    PromptOutcome,
    ResourceOutcome,
)
from axolotl_server.client.requests import Listening, OnNotification, Requests, is_asking, is_task, unanswered
from axolotl_server.configuration.origins import combine
from axolotl_server.configuration.settings_file import read_settings_file, split_settings
from axolotl_server.handler import DefaultHandler
from axolotl_server.host import ServerHost
from axolotl_server.methods.subscriptions import Listable


class InProcessClient:
    """A client of the stateless revision; any number of requests may run concurrently.

    Cancelling the task of a request cancels it on the server too. `answer` gets every question of the server as an
    `Inquiry` and returns an `Answer`. `capabilities` are the client's capabilities; by default, the server may ask
    everything if there is an `answer`, and nothing otherwise. `on_progress` and `on_log` get the params of progress
    notifications and of log messages of all levels while a request runs.
    """

    def __init__(
        self,
        handler: DefaultHandler,
        principal: Principal = ANONYMOUS,
        *,
        answer: Answering | None = None,
        capabilities: Mapping[str, Any] | None = None,
    ) -> None:
        if capabilities is None:
            capabilities = {} if answer is None else EVERYTHING
        self._requests = Requests(handler, principal, answer, capabilities)

    async def list_tools(self) -> list[dict[str, Any]]:
        """List all tools."""
        return await self._list("tools/list", "tools")

    async def list_prompts(self) -> list[dict[str, Any]]:
        """List all prompts."""
        return await self._list("prompts/list", "prompts")

    async def list_resources(self) -> list[dict[str, Any]]:
        """List all resources with a fixed URI."""
        return await self._list("resources/list", "resources")

    async def list_resource_templates(self) -> list[dict[str, Any]]:
        """List all resource templates."""
        return await self._list("resources/templates/list", "resourceTemplates")

    async def call(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        meta: Mapping[str, Any] | None = None,
        on_progress: OnNotification | None = None,
        on_log: OnNotification | None = None,
    ) -> CallOutcome:
        """Call a tool; if the capabilities include the tasks extension, wait for the end of a task.

        The tool reads `meta` as `context.meta`.

        Raises RemoteError if the server refuses the request, for example for an unknown name, UnansweredQuestion if the
        tool asks and there is no `answer`, and TaskCancelled if the task was cancelled.
        """
        params = {"name": name, "arguments": arguments or {}}
        result = await self._finish("tools/call", params, meta, on_progress, on_log)
        return CallOutcome.of(await self._follow_or_cancel(result["taskId"]) if is_task(result) else result)

    async def get_prompt(
        self,
        name: str,
        arguments: Mapping[str, str] | None = None,
        *,
        meta: Mapping[str, Any] | None = None,
        on_progress: OnNotification | None = None,
        on_log: OnNotification | None = None,
    ) -> PromptOutcome:
        """Get a prompt.

        Raises RemoteError if there is no such prompt, its arguments are invalid, or it fails, and UnansweredQuestion if
        it asks and there is no `answer`.
        """
        params = {"name": name, "arguments": arguments or {}}
        return PromptOutcome.of(await self._finish("prompts/get", params, meta, on_progress, on_log))

    async def read_resource(
        self,
        uri: str,
        *,
        meta: Mapping[str, Any] | None = None,
        on_progress: OnNotification | None = None,
        on_log: OnNotification | None = None,
    ) -> ResourceOutcome:
        """Read a resource.

        Raises RemoteError if there is no such resource or reading it fails, and UnansweredQuestion if it asks and there
        is no `answer`.
        """
        return ResourceOutcome.of(await self._finish("resources/read", {"uri": uri}, meta, on_progress, on_log))

    async def complete(
        self,
        argument: str,
        value: str = "",
        *,
        prompt: str | None = None,
        template: str | None = None,
        known: Mapping[str, str] | None = None,
    ) -> Completion:
        """Complete `value`, which was typed for an argument of a prompt or a variable of a template.

        `known` are the other arguments. Raises RemoteError if there is no such prompt, template or argument, and
        ValueError unless either a prompt or a template is given.
        """
        if (prompt is None) == (template is None):
            raise ValueError("Give either a prompt or a template")
        reference = (
            {"type": "ref/resource", "uri": template} if prompt is None else {"type": "ref/prompt", "name": prompt}
        )
        params = {
            "ref": reference,
            "argument": {"name": argument, "value": value},
            "context": {"arguments": known or {}},
        }
        found = (await self.request("completion/complete", params))["completion"]
        return Completion(found["values"], found.get("total"), found.get("hasMore"))

    @asynccontextmanager
    async def listen(
        self, *uris: str, lists: Collection[Listable] = ("tools", "prompts", "resources")
    ) -> AsyncIterator[Listening]:
        """Listen for changes of these resources and lists while the block runs; raises RemoteError."""
        wanted: dict[str, Any] = {f"{kind}ListChanged": True for kind in lists}
        if uris:
            wanted["resourceSubscriptions"] = uris
        async with self._requests.conversation() as conversation:
            conversation.begin("subscriptions/listen", {"notifications": wanted, "_meta": self._requests.meta()})
            acknowledged = await conversation.receive()
            accepted = {} if acknowledged is None else acknowledged[1]["notifications"]
            yield Listening(conversation, accepted)

    async def request(
        self,
        method: str,
        params: Mapping[str, Any],
        *,
        on_progress: OnNotification | None = None,
        on_log: OnNotification | None = None,
    ) -> Any:
        """Send any request, answer the questions of the server, and return the result.

        Without an `answer`, the result may be the questions. A `_meta` in the params is kept. Raises RemoteError if the
        answer is an error, UnansweredQuestion if the server keeps asking, and ConnectionError if the client is closed.
        """
        return await self._requests.finish(method, params, on_progress, on_log)

    async def follow(self, task_id: str) -> Any:
        """Wait for the end of a task, answer its questions, and return its result.

        Raises RemoteError if it ends with an error, TaskCancelled if it was cancelled, UnansweredQuestion if it asks
        and there is no `answer`, and ConnectionError if the client is closed or the server stops.
        """
        return await self._requests.follow(task_id)

    async def close(self) -> None:
        """Close the client; running requests are cancelled."""
        await self._requests.close()

    async def _follow_or_cancel(self, task_id: str) -> Any:
        try:
            return await self.follow(task_id)
        except BaseException:
            await self._requests.cancel_task(task_id)
            raise

    async def _list(self, method: str, field: str) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = []
        params: dict[str, Any] = {}
        while True:
            result = await self.request(method, params)
            items += result[field]
            if "nextCursor" not in result:
                return items
            params = {"cursor": result["nextCursor"]}

    async def _finish(
        self,
        method: str,
        params: Mapping[str, Any],
        meta: Mapping[str, Any] | None,
        on_progress: OnNotification | None,
        on_log: OnNotification | None,
    ) -> Any:
        if meta is not None:
            params = {**params, "_meta": meta}
        result = await self.request(method, params, on_progress=on_progress, on_log=on_log)
        if is_asking(result):
            raise unanswered("The server asks, but the client has no answer: pass one to connect()", result)
        return result


@asynccontextmanager
async def connect(
    container: containers.Container,
    *,
    settings: Mapping[str, Any] | str | Path | None = None,
    profile: str | None = None,
    toolsets: Sequence[str] = (),
    principal: Principal = ANONYMOUS,
    answer: Answering | None = None,
    capabilities: Mapping[str, Any] | None = None,
) -> AsyncIterator[InProcessClient]:
    """Start the server of a container and connect to it.

    `settings` is the path of a settings file or has the form of one, and `profile` selects one of its profiles.
    Environment variables have no effect. `answer` and `capabilities` are those of `InProcessClient`.
    """
    is_file = isinstance(settings, str | Path)
    read = read_settings_file(Path(settings)) if isinstance(settings, str | Path) else split_settings(settings or {})
    chosen = read.select(profile)
    flags, file = (None, chosen) if is_file else (combine(chosen.sources).values, None)
    names = toolsets or chosen.toolset_names
    async with ServerHost(container, flags=flags, file=file, toolsets=names, environment={}) as host:
        client = InProcessClient(host.handler, principal, answer=answer, capabilities=capabilities)
        try:
            yield client
        finally:
            await client.close()
