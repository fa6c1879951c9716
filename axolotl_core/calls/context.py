"""`Context`, the call as its code sees it."""

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from functools import partial
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, overload

import msgspec
from pydantic import BaseModel

from axolotl_core.calls.caller import NOBODY, ICaller
from axolotl_core.calls.cancellation import CancellationToken, CancelReason
from axolotl_core.calls.scope import CallScope, Scoped
from axolotl_core.calls.steps import read_step, write_step
from axolotl_core.protocol.identity import ANONYMOUS, Implementation, Principal, RequestId
from axolotl_core.protocol.messages import LogLevel, TraceContext
from axolotl_core.questions.question import (
    Root,
    form_question,
    read_form,
    read_roots,
    read_url,
    roots_question,
    url_question,
)
from axolotl_core.questions.sampling import Sample, SamplingMessage, SamplingOptions, read_sample, sampling_question

if TYPE_CHECKING:
    from axolotl_core.tools.tool import ITool

ModelT = TypeVar("ModelT", bound=BaseModel)
ValueT = TypeVar("ValueT")


class Context(msgspec.Struct, eq=False):
    """One call of a tool, prompt or resource, as its code sees it.

    It is a struct, because one is created for every call and structs are the cheapest objects.
    """

    request_id: RequestId = 0
    caller: ICaller = NOBODY
    principal: Principal = ANONYMOUS
    token: CancellationToken | None = None
    """The state of the cancellation, created on first use."""
    deadline: float | None = None
    """When the call is stopped, in `time.monotonic` seconds."""
    uri: str = ""
    """The URI, if a resource is read."""
    scope: CallScope | None = None
    """The objects that live as long as the call, created on first use."""
    counts_pieces: bool = True
    """Whether the pieces of a stream are reported as progress: until its code reports progress itself."""

    @property
    def client(self) -> Implementation | None:
        """The name and version that the client claims. They prove nothing."""
        return self.caller.client

    @property
    def cancellation(self) -> CancellationToken:
        """The cancellation token of the call, to pass on or to watch."""
        if self.token is None:
            self.token = CancellationToken()
        return self.token

    @property
    def cancelled(self) -> bool:
        """Whether the call should stop. A tool in a thread checks this between steps."""
        return self.token is not None and self.token.reason is not None

    @property
    def cancel_reason(self) -> CancelReason | None:
        """Why the call should stop."""
        return None if self.token is None else self.token.reason

    @property
    def remaining_seconds(self) -> float | None:
        """The time left until the deadline; None without a deadline."""
        return None if self.deadline is None else max(0.0, self.deadline - time.monotonic())

    @property
    def trace(self) -> TraceContext | None:
        """The distributed trace that the call belongs to, if the caller sent one."""
        return self.caller.trace

    @property
    def meta(self) -> Mapping[str, Any]:
        """What the client added to the request in `_meta`, read-only. It proves nothing.

        Keys of the protocol, `progressToken` and those that begin with `io.modelcontextprotocol/`, are left out. The
        message is decoded again each time.
        """
        return self.caller.meta

    def raise_if_cancelled(self) -> None:
        """Stop the code here if the call was cancelled.

        Raises:
            ToolCancelled: if the call was cancelled.
        """
        self.cancellation.raise_if_cancelled()

    def report_progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Report progress, if the caller asked for it. Never blocks; can be called from any thread.

        In a tool that streams, this replaces the notifications with the number of pieces.
        """
        self.counts_pieces = False
        self.caller.report_progress(progress, total, message)

    def add_piece(self, before: int) -> None:
        """Report the pieces of a stream before a new one, or at its end, unless its code reports progress itself.

        A piece is reported with the next one, so that code can still report its own progress after the first piece.
        """
        if before and self.counts_pieces:
            self.caller.report_progress(before, None, None)

    def log(self, level: LogLevel, data: Any, logger: str | None = None) -> None:
        """Send a log message, any JSON value, if the caller wants messages of this level. Never blocks."""
        self.caller.log(level, data, logger)

    async def ask(self, model: type[ModelT], message: str, *, key: str | None = None) -> ModelT:
        """Ask the user to fill in a form: a flat model of strings, numbers, booleans and choices.

        In the stateless revision, the code runs again from the start when the answer has arrived. So everything before
        `ask` must be safe to repeat. Set `key` to identify the question if its position in the code can change.

        Raises:
            Declined: if the user does not answer. If the code does not catch it, the model reads it.
            MissingCapability: if the client cannot ask its user.
        """
        return await self.caller.ask(self, form_question(model, message), partial(read_form, model), key)

    async def ask_url(self, url: str, message: str, *, key: str | None = None, reference: str | None = None) -> None:
        """Ask the user to open a page, for input that must not pass through the client, such as secrets.

        Returns when the user has agreed to open the page, not when the user has finished there. Pass a `reference` to
        report that later with `url_completed`.

        Raises:
            Declined: if the user does not agree.
            MissingCapability: if the client cannot open pages.
        """
        await self.caller.ask(self, url_question(url, message, reference), read_url, key)

    def url_completed(self, reference: str) -> None:
        """Notify the client that the user has finished with a page, if the revision supports that."""
        self.caller.url_completed(reference)

    async def sample(
        self, messages: str | Sequence[SamplingMessage], *, key: str | None = None, **options: Unpack[SamplingOptions]
    ) -> Sample:
        """Ask the client's model to generate a message.

        Raises:
            Declined: if the user or the client refuses.
            MissingCapability: if the client does not support sampling.
        """
        return await self.caller.ask(self, sampling_question(messages, **options), read_sample, key)

    async def roots(self, *, key: str | None = None) -> tuple[Root, ...]:
        """Ask for the directories that the user works in. They are a hint, not a permission.

        Raises:
            MissingCapability: if the client does not support roots.
        """
        return await self.caller.ask(self, roots_question(), read_roots, key)

    @overload
    async def step(
        self, key: str, work: Callable[[str], Awaitable[ValueT] | ValueT], *, model: type[ValueT]
    ) -> ValueT: ...
    @overload
    async def step(self, key: str, work: Callable[[str], Any]) -> Any: ...
    async def step(self, key: str, work: Callable[[str], Any], *, model: Any = None) -> Any:
        """Do work once, although the code may run again from the start: after a question, or on another worker.

        The result of `work` is stored as JSON under a key that is unique within the call. A later run of the same call
        gets the stored result and does not repeat the work. `work` gets a string that is the same in every run and
        that nothing else shares: pass it to an upstream service as its idempotency key, because the process can end
        after the work and before its result is stored. Failures are not stored. `model` is the type of the result; any
        JSON value without it.

        Raises:
            ToolError: if the result is too large to be stored, or a stored result does not fit `model`.
        """
        kept = await self.caller.recall(self, key)
        if kept.value is not None:
            return read_step(key, kept.value, model)
        done = work(kept.idempotency_key)
        written = write_step(key, await done if isawaitable(done) else done, model)
        await self.caller.keep(self, key, written)
        return read_step(key, written, model)

    async def detach(self) -> None:
        """End the part of the call that runs in the request: the rest runs as a task, with its answers and steps.

        The tool needs `task_support = "detached"`. For a client that supports tasks in the stateless revision, the code
        ends here, and the task runs it from the start; it gets here with the answers to all questions so far. For other
        clients, and in a task, this does nothing.
        """
        await self.caller.detach(self)

    @property
    def can_ask(self) -> bool:
        """Whether the client can ask its user to fill in a form."""
        return self.caller.declares({"elicitation": {"form": {}}})

    @property
    def can_ask_url(self) -> bool:
        """Whether the client can ask its user to open a page."""
        return self.caller.declares({"elicitation": {"url": {}}})

    @property
    def can_sample(self) -> bool:
        """Whether the client supports sampling."""
        return self.caller.declares({"sampling": {}})

    @property
    def can_list_roots(self) -> bool:
        """Whether the client supports roots."""
        return self.caller.declares({"roots": {}})

    def client_extension(self, identifier: str) -> Mapping[str, Any] | None:
        """Return the client's settings for an extension; None if it does not support it."""
        return self.caller.extension(identifier)

    @overload
    async def enter(self, factory: Callable[[], AbstractAsyncContextManager[ValueT]]) -> ValueT: ...
    @overload
    async def enter(self, factory: Callable[[], AbstractContextManager[ValueT]]) -> ValueT: ...
    @overload
    async def enter(self, factory: Callable[[], Awaitable[ValueT]]) -> ValueT: ...
    @overload
    async def enter(self, factory: Callable[[], ValueT]) -> ValueT: ...
    async def enter(self, factory: Scoped) -> Any:
        """Return the object that a factory creates for this call, the same one every time.

        A context manager is entered. It exits after the call has been answered, with the exception that ended the
        call, if any.

        Raises:
            ToolCancelled: if the call was stopped before the object was ready.
        """
        if self.scope is None:
            self.scope = CallScope()
        return await self.scope.enter(factory, self)

    @overload
    def open(self, factory: Callable[[], AbstractContextManager[ValueT]]) -> ValueT: ...
    @overload
    def open(self, factory: Callable[[], ValueT]) -> ValueT: ...
    def open(self, factory: Scoped) -> Any:
        """Like `enter`, for code that cannot await, such as a plain function in a worker thread.

        Raises:
            ToolCancelled: if the call was stopped before the object was ready.
            TypeError: if the object must be awaited.
        """
        if self.scope is None:
            self.scope = CallScope()
        return self.scope.open(factory, self)

    def hang_up(self) -> None:
        """Close the caller's connection during a long call. The caller reconnects to receive the result.

        Affects only clients over HTTP whose revision allows that.
        """
        self.caller.hang_up()

    async def visible_tools(self) -> "tuple[ITool[Any, Any], ...]":
        """Return the tools that the caller may use, in the order of `tools/list`.

        A tool that lists, describes or searches other tools uses this instead of a registry, which also contains tools
        that are disabled or denied to the caller.

        Raises:
            InternalError: if the authorizer failed.
        """
        return await self.caller.visible_tools()
