"""The client: the same for a server in this process, in a child process, and behind a URL."""

from collections.abc import Collection, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

from axolotl_core.features.completion import Completion
from axolotl_core.protocol.identity import ANONYMOUS, Principal
from axolotl_core.protocol.versions import LATEST_STATELESS_REVISION, REVISIONS, Revision
from axolotl_core.resources.skills import SKILLS_EXTENSION
from axolotl_server.client.channel import InvalidReply, MemoryChannel, MemoryPipe
from axolotl_server.client.replies import (
    Answering,
    CallReply,
    PromptReply,
    ResourceReply,
    ServerDescription,
    check_result,
)
from axolotl_server.client.requests import (
    MAX_PAGES,
    Listeners,
    Listening,
    OnNotification,
    Requests,
    is_asking,
    task_id_in,
    unanswered,
)
from axolotl_server.client.stateless_requests import StatelessRequests
from axolotl_server.handler import DefaultHandler
from axolotl_server.protocol.subscriptions import Listable


class Client:
    """A client of a server; any number of requests may run concurrently.

    `connect`, `connect_url` and `connect_process` make one. Cancelling the task of a request cancels it on the server
    too. `on_progress` and `on_log` get the params of progress notifications and of log messages of all levels while a
    request runs.
    """

    def __init__(self, requests: Requests, *, is_trusted: bool = False) -> None:
        """Use these requests; only the results of a trusted server are not checked."""
        self._requests = requests
        self._is_trusted = is_trusted

    @property
    def revision(self) -> str:
        """The protocol revision that the client uses."""
        return self._requests.revision.name

    async def describe(self) -> ServerDescription:
        """Ask the server for its identity and capabilities."""
        return await self._requests.describe()

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

    async def list_skills(self) -> list[dict[str, Any]]:
        """List all skills, each with its front matter and the digests of its files."""
        return await self._list("skills/list", "skills")

    async def list_all(self) -> dict[str, list[dict[str, Any]]]:
        """List the features of all kinds that the server has: tools, prompts, resources, templates and skills."""
        has = (await self.describe()).capabilities
        return {
            "tools": await self.list_tools() if "tools" in has else [],
            "prompts": await self.list_prompts() if "prompts" in has else [],
            "resources": await self.list_resources() if "resources" in has else [],
            "templates": await self.list_resource_templates() if "resources" in has else [],
            "skills": await self.list_skills() if SKILLS_EXTENSION in has.get("extensions", {}) else [],
        }

    async def call(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        meta: Mapping[str, Any] | None = None,
        on_progress: OnNotification | None = None,
        on_log: OnNotification | None = None,
    ) -> CallReply:
        """Call a tool; if the capabilities include the tasks extension, wait for the end of a task.

        The tool reads `meta` as `context.meta`.

        Raises RemoteError if the server refuses the request, for example for an unknown name, UnansweredQuestion if the
        tool asks and there is no `answer`, and TaskCancelled if the task was cancelled.
        """
        params = {"name": name, "arguments": arguments or {}}
        result = await self._finish("tools/call", params, meta, Listeners(on_progress, on_log))
        task_id = task_id_in(result)
        if task_id is not None:
            result = self._checked("tools/call", await self._requests.follow_or_cancel(task_id))
        return CallReply.of(result)

    async def get_prompt(
        self,
        name: str,
        arguments: Mapping[str, str] | None = None,
        *,
        meta: Mapping[str, Any] | None = None,
        on_progress: OnNotification | None = None,
        on_log: OnNotification | None = None,
    ) -> PromptReply:
        """Get a prompt.

        Raises RemoteError if there is no such prompt, its arguments are invalid, or it fails, and UnansweredQuestion if
        it asks and there is no `answer`.
        """
        params = {"name": name, "arguments": arguments or {}}
        return PromptReply.of(await self._finish("prompts/get", params, meta, Listeners(on_progress, on_log)))

    async def read_resource(
        self,
        uri: str,
        *,
        meta: Mapping[str, Any] | None = None,
        on_progress: OnNotification | None = None,
        on_log: OnNotification | None = None,
    ) -> ResourceReply:
        """Read a resource.

        Raises RemoteError if there is no such resource or reading it fails, and UnansweredQuestion if it asks and there
        is no `answer`.
        """
        return ResourceReply.of(
            await self._finish("resources/read", {"uri": uri}, meta, Listeners(on_progress, on_log))
        )

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

    def listen(
        self, *uris: str, lists: Collection[Listable] = ("tools", "prompts", "resources")
    ) -> AbstractAsyncContextManager[Listening]:
        """Listen for changes of these resources and lists while the block runs; raises RemoteError."""
        return self._requests.listen(uris, lists)

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
        return self._checked(method, await self._requests.finish(method, params, Listeners(on_progress, on_log)))

    async def run(
        self,
        method: str,
        params: Mapping[str, Any],
        *,
        on_progress: OnNotification | None = None,
        on_log: OnNotification | None = None,
    ) -> Any:
        """Send any request as `request` does; if it can only run as a task, run it as one and wait for its end.

        Raises TaskCancelled if the task was cancelled.
        """
        return self._checked(method, await self._requests.run(method, params, Listeners(on_progress, on_log)))

    async def follow(self, task_id: str) -> Any:
        """Wait for the end of a task, answer its questions, and return its result.

        Raises RemoteError if it ends with an error, TaskCancelled if it was cancelled, UnansweredQuestion if it asks
        and there is no `answer`, and ConnectionError if the client is closed or the server stops.
        """
        return await self._requests.follow(task_id)

    async def close(self) -> None:
        """Close the client; running requests are cancelled."""
        await self._requests.close()

    def _checked(self, method: str, result: Any) -> Any:
        if not self._is_trusted:
            check_result(method, result)
        return result

    async def _list(self, method: str, field: str) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = []
        params: dict[str, Any] = {}
        for _ in range(MAX_PAGES):
            result = await self.request(method, params)
            items += result[field]
            if "nextCursor" not in result:
                return items
            params = {"cursor": result["nextCursor"]}
        raise InvalidReply(f"{method} has more than {MAX_PAGES} pages")

    async def _finish(
        self, method: str, params: Mapping[str, Any], meta: Mapping[str, Any] | None, heard: Listeners
    ) -> Any:
        if meta is not None:
            params = {**params, "_meta": meta}
        result = self._checked(method, await self._requests.finish(method, params, heard))
        if is_asking(result):
            raise unanswered("The server asks, but the client has no answer: pass one to connect()", result)
        return result


class InProcessClient(Client):
    """A client of a handler in this process, without a network.

    `answer` gets every question of the server as a `Question` and returns an `Answer`. `capabilities` are the client's
    capabilities; by default, the server may ask everything if there is an `answer`, and nothing otherwise. `revision`
    is the protocol revision, by default the latest one.
    """

    def __init__(
        self,
        handler: DefaultHandler,
        principal: Principal = ANONYMOUS,
        *,
        answer: Answering | None = None,
        capabilities: Mapping[str, Any] | None = None,
        revision: str | None = None,
    ) -> None:
        chosen = LATEST_STATELESS_REVISION if revision is None else find_revision(revision)
        requests: Requests
        if chosen.stateless:
            requests = StatelessRequests(MemoryChannel(handler, principal), answer, capabilities, chosen)
        else:
            from axolotl_server.client.handshake_requests import HandshakeRequests

            requests = HandshakeRequests(MemoryPipe(handler, principal), answer, capabilities, chosen)
        super().__init__(requests, is_trusted=True)


def find_revision(name: str) -> Revision:
    """Find a protocol revision; raises ValueError if it is unknown."""
    for revision in REVISIONS:
        if revision.name == name:
            return revision
    raise ValueError(f"{name!r} is not a protocol revision: use {', '.join(one.name for one in REVISIONS)}")
