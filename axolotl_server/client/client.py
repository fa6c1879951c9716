"""A client in the same process: the real pipeline without a wire, for tests and the command line."""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
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
from axolotl_server.client.requests import Listening, OnTold, Requests, is_asking, is_task, unanswered
from axolotl_server.handler import DefaultHandler
from axolotl_server.host import ServerHost
from axolotl_server.methods.subscriptions import Listable


class InProcessClient:
    """Speaks the stateless revision to a handler; any number of requests may run at once.

    A request whose task is cancelled is cancelled at the server too. `answer` is given every question that the server
    asks, as an `Inquiry`, and gives an `Answer`; `capabilities` says what may be asked, which is everything unless it
    says less, and nothing where there is no `answer`. `on_progress` and `on_log` hear the params of what is told about
    one request before it is answered, log messages of all levels.
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
        """List all tools, page by page."""
        return await self._list("tools/list", "tools")

    async def list_prompts(self) -> list[dict[str, Any]]:
        """List all prompts, page by page."""
        return await self._list("prompts/list", "prompts")

    async def list_resources(self) -> list[dict[str, Any]]:
        """List all resources with a fixed URI, page by page."""
        return await self._list("resources/list", "resources")

    async def list_resource_templates(self) -> list[dict[str, Any]]:
        """List all resource templates, page by page."""
        return await self._list("resources/templates/list", "resourceTemplates")

    async def call(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        on_progress: OnTold | None = None,
        on_log: OnTold | None = None,
    ) -> CallOutcome:
        """Call a tool; if the client's capabilities have the extension for tasks, a task is followed to its end.

        Raises:
            RemoteError: if the server refuses the request itself, as for a name that no tool has.
            UnansweredQuestion: if the tool asks and there is nobody to answer.
            TaskCancelled: if the call became a task that was ended without a result.
        """
        params = {"name": name, "arguments": arguments or {}}
        result = await self._finish("tools/call", params, on_progress, on_log)
        return CallOutcome.of(await self._followed(result["taskId"]) if is_task(result) else result)

    async def get_prompt(
        self,
        name: str,
        arguments: Mapping[str, str] | None = None,
        *,
        on_progress: OnTold | None = None,
        on_log: OnTold | None = None,
    ) -> PromptOutcome:
        """Have a prompt rendered.

        Raises:
            RemoteError: if there is no such prompt, its arguments are wrong, or it fails.
            UnansweredQuestion: if the prompt asks and there is nobody to answer.
        """
        params = {"name": name, "arguments": arguments or {}}
        return PromptOutcome.of(await self._finish("prompts/get", params, on_progress, on_log))

    async def read_resource(
        self, uri: str, *, on_progress: OnTold | None = None, on_log: OnTold | None = None
    ) -> ResourceOutcome:
        """Read what is behind a URI.

        Raises:
            RemoteError: if there is nothing, or reading it fails.
            UnansweredQuestion: if the resource asks and there is nobody to answer.
        """
        return ResourceOutcome.of(await self._finish("resources/read", {"uri": uri}, on_progress, on_log))

    async def complete(
        self,
        argument: str,
        value: str = "",
        *,
        prompt: str | None = None,
        template: str | None = None,
        known: Mapping[str, str] | None = None,
    ) -> Completion:
        """Suggest values for an argument of a prompt, or a variable of a template, of which `value` was typed.

        Raises:
            RemoteError: if there is no such prompt, template or argument.
            ValueError: unless either a prompt or a template is named.
        """
        if (prompt is None) == (template is None):
            raise ValueError("Name the prompt or the template whose argument is to be completed")
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
        """Hear of changes of these resources, and of the lists, for as long as the block lasts.

        Raises:
            RemoteError: if the server refuses.
        """
        wanted: dict[str, Any] = {f"{kind}ListChanged": True for kind in lists}
        if uris:
            wanted["resourceSubscriptions"] = uris
        async with self._requests.conversation() as conversation:
            conversation.begin("subscriptions/listen", {"notifications": wanted, "_meta": self._requests.meta()})
            acknowledged = await conversation.hear()
            accepted = {} if acknowledged is None else acknowledged[1]["notifications"]
            yield Listening(conversation, accepted)

    async def request(
        self,
        method: str,
        params: Mapping[str, Any],
        *,
        on_progress: OnTold | None = None,
        on_log: OnTold | None = None,
    ) -> Any:
        """Send a request of any kind and wait for its result; what the server asks meanwhile is answered.

        Where the client has no `answer`, the result may be the questions. A `_meta` of the params is kept.

        Raises:
            RemoteError: if the answer is an error.
            UnansweredQuestion: if the server never stops asking.
            ConnectionError: if the client is closed.
        """
        return await self._requests.finish(method, params, on_progress, on_log)

    async def follow(self, task_id: str) -> Any:
        """Wait for the end of a task and give its result; what it asks is answered.

        Raises:
            RemoteError: if it ends with an error.
            TaskCancelled: if it is ended without a result.
            UnansweredQuestion: if it asks and there is nobody to answer.
            ConnectionError: if the client is closed, or the server ends.
        """
        return await self._requests.follow(task_id)

    async def close(self) -> None:
        """End the connection; requests that still run are cancelled."""
        await self._requests.close()

    async def _followed(self, task_id: str) -> Any:
        """Wait for a task that nobody else will; without somebody who waits it is of no use."""
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
        self, method: str, params: Mapping[str, Any], on_progress: OnTold | None, on_log: OnTold | None
    ) -> Any:
        """Send a request that may ask, and see to it that its result is complete."""
        result = await self.request(method, params, on_progress=on_progress, on_log=on_log)
        if is_asking(result):
            raise unanswered("The server asks, and nobody answers: give connect() an answer", result)
        return result


@asynccontextmanager
async def connect(
    container: containers.Container,
    *,
    settings: Mapping[str, Any] | None = None,
    toolsets: Sequence[str] = (),
    principal: Principal = ANONYMOUS,
    answer: Answering | None = None,
    capabilities: Mapping[str, Any] | None = None,
) -> AsyncIterator[InProcessClient]:
    """Start a container's server and talk to it; `settings` has the form of the settings file.

    `answer` and `capabilities` say what the server may ask and what it is told then, see `InProcessClient`.
    """
    async with ServerHost(container, flags=settings, toolsets=toolsets) as host:
        client = InProcessClient(host.handler, principal, answer=answer, capabilities=capabilities)
        try:
            yield client
        finally:
            await client.close()
