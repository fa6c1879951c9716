"""What a tool learns about the call it answers, and how it speaks while it works."""

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from functools import partial
from typing import Any, Protocol, TypeVar, Unpack, overload

import msgspec
from pydantic import BaseModel

from axolotl_core.calls.cancellation import CancellationToken, CancelReason
from axolotl_core.calls.scope import CallScope, Scoped
from axolotl_core.errors import MissingCapability
from axolotl_core.protocol.identity import ANONYMOUS, Implementation, Principal, RequestId
from axolotl_core.protocol.messages import LogLevel, TraceContext
from axolotl_core.questions.question import (
    Question,
    Root,
    form_question,
    read_form,
    read_roots,
    read_url,
    roots_question,
    url_question,
)
from axolotl_core.questions.sampling import Sample, SamplingMessage, SamplingOptions, read_sample, sampling_question

AnswerT = TypeVar("AnswerT")


class ICaller(Protocol):
    """Who made a call."""

    @property
    def client(self) -> Implementation | None:
        """What the client says it is; never proof of anything."""
        ...

    @property
    def trace(self) -> TraceContext | None:
        """The trace that the request belongs to."""
        ...

    def report_progress(self, progress: float, total: float | None, message: str | None) -> None:
        """Send a progress notification if the caller asked for them."""
        ...

    def log(self, level: LogLevel, data: Any, logger: str | None) -> None:
        """Send a log message if the caller wants those of this level."""
        ...

    def declares(self, capability: Mapping[str, Any]) -> bool:
        """Tell whether the client said that it can do something."""
        ...

    def extension(self, identifier: str) -> Mapping[str, Any] | None:
        """Give the client's settings of an extension, None if it does not have it."""
        ...

    async def ask(
        self, context: "ToolContext", question: Question, read: Callable[[Any], AnswerT], key: str | None
    ) -> AnswerT:
        """Have a question answered; `read` makes sense of the answer.

        Raises:
            MissingCapability: if the client cannot be asked this.
            Declined: if it did not answer.
        """
        ...

    def url_completed(self, reference: str) -> None:
        """Say that the user is done with a page, if the caller's revision has a word for it."""
        ...

    def hang_up(self) -> None:
        """End the caller's connection if it can come back for the answer."""
        ...


class _Nobody:
    """The caller of a context that was made by hand, as unit tests do."""

    client: Implementation | None = None
    trace: TraceContext | None = None

    def report_progress(self, progress: float, total: float | None, message: str | None) -> None:
        return

    def log(self, level: LogLevel, data: Any, logger: str | None) -> None:
        return

    def declares(self, capability: Mapping[str, Any]) -> bool:
        return False

    def extension(self, identifier: str) -> Mapping[str, Any] | None:
        return None

    async def ask(
        self, context: "ToolContext", question: Question, read: Callable[[Any], AnswerT], key: str | None
    ) -> AnswerT:
        raise MissingCapability("Nobody is there to be asked", question.requires)

    def url_completed(self, reference: str) -> None:
        return

    def hang_up(self) -> None:
        return


NOBODY: ICaller = _Nobody()


ModelT = TypeVar("ModelT", bound=BaseModel)
ValueT = TypeVar("ValueT")


class ToolContext(msgspec.Struct, eq=False):
    """One call of a tool, prompt or resource, as its code sees it.

    It is a struct, not a plain class, because one is made for every call: this is the cheapest object there is.
    """

    request_id: RequestId = 0
    caller: ICaller = NOBODY
    principal: Principal = ANONYMOUS
    token: CancellationToken | None = None
    """The state of the call's cancellation, made when somebody first asks for it."""
    deadline: float | None = None
    """When the call will be ended, on the clock of `time.monotonic`."""
    uri: str = ""
    """The URI that is read, where a resource is."""
    scope: CallScope | None = None
    """What lives as long as the call, once there is something."""

    @property
    def client(self) -> Implementation | None:
        """What the client says it is; never proof of anything."""
        return self.caller.client

    @property
    def cancellation(self) -> CancellationToken:
        """The call's cancellation, to be handed on or listened to."""
        if self.token is None:
            self.token = CancellationToken()
        return self.token

    @property
    def cancelled(self) -> bool:
        """Whether the call should stop; a tool in a thread looks here between two steps."""
        return self.token is not None and self.token.reason is not None

    @property
    def cancel_reason(self) -> CancelReason | None:
        """Why the call should stop."""
        return None if self.token is None else self.token.reason

    @property
    def remaining_seconds(self) -> float | None:
        """The time left before the deadline, None where there is no deadline."""
        return None if self.deadline is None else max(0.0, self.deadline - time.monotonic())

    @property
    def trace(self) -> TraceContext | None:
        """The distributed trace that the call belongs to, where its caller says so."""
        return self.caller.trace

    def raise_if_cancelled(self) -> None:
        """Leave the tool's code at a convenient place.

        Raises:
            ToolCancelled: if the call was cancelled.
        """
        self.cancellation.raise_if_cancelled()

    def report_progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Tell a caller that asked for it how far the work is; it never waits, from a thread neither."""
        self.caller.report_progress(progress, total, message)

    def log(self, level: LogLevel, data: Any, logger: str | None = None) -> None:
        """Send the caller a message, any JSON value, if it wants those of this level; it never waits."""
        self.caller.log(level, data, logger)

    async def ask(self, model: type[ModelT], message: str, *, key: str | None = None) -> ModelT:
        """Have the user fill in a form: a flat model of texts, numbers, booleans and choices.

        In the stateless revision the code runs again from its start when the answer is there, so that what stands
        before an `ask` must bear being repeated. `key` names the question where its place in the code may change.

        Raises:
            Declined: if the user does not answer; it may pass, then the model is told.
            MissingCapability: if the client cannot ask its user.
        """
        return await self.caller.ask(self, form_question(model, message), partial(read_form, model), key)

    async def ask_url(self, url: str, message: str, *, key: str | None = None, reference: str | None = None) -> None:
        """Have the user open a page, for what must not pass through the client, such as secrets.

        It returns when the user agreed to open the page, which does not mean that anything was done there. A
        `reference` of your own lets `url_completed` tell the client when something was.

        Raises:
            Declined: if the user does not want to.
            MissingCapability: if the client cannot show pages.
        """
        await self.caller.ask(self, url_question(url, message, reference), read_url, key)

    def url_completed(self, reference: str) -> None:
        """Tell a client whose revision has a word for it that the user is done with a page."""
        self.caller.url_completed(reference)

    async def sample(
        self,
        messages: str | Sequence[SamplingMessage],
        *,
        key: str | None = None,
        **options: Unpack[SamplingOptions],
    ) -> Sample:
        """Have the client's model write something.

        Raises:
            Declined: if the user or the client refuses.
            MissingCapability: if the client lends no model.
        """
        return await self.caller.ask(self, sampling_question(messages, **options), read_sample, key)

    async def roots(self, *, key: str | None = None) -> tuple[Root, ...]:
        """Ask which directories the user works in; a hint, not a permission.

        Raises:
            MissingCapability: if the client has no roots.
        """
        return await self.caller.ask(self, roots_question(), read_roots, key)

    @property
    def can_ask(self) -> bool:
        """Whether the client can have its user fill in a form."""
        return self.caller.declares({"elicitation": {"form": {}}})

    @property
    def can_ask_url(self) -> bool:
        """Whether the client can have its user open a page."""
        return self.caller.declares({"elicitation": {"url": {}}})

    @property
    def can_sample(self) -> bool:
        """Whether the client lends its model."""
        return self.caller.declares({"sampling": {}})

    @property
    def can_list_roots(self) -> bool:
        """Whether the client tells its roots."""
        return self.caller.declares({"roots": {}})

    def client_extension(self, identifier: str) -> Mapping[str, Any] | None:
        """Give the client's settings of an extension, None if it does not have it."""
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
        """Give what a factory makes for this call, the same at every time; a context manager is entered.

        It is finalised after the call was answered, however the call ended; the way it ended is what the context
        manager's exit is told.

        Raises:
            ToolCancelled: if the call was stopped before the thing was there.
        """
        if self.scope is None:
            self.scope = CallScope()
        return await self.scope.enter(factory, self)

    @overload
    def open(self, factory: Callable[[], AbstractContextManager[ValueT]]) -> ValueT: ...
    @overload
    def open(self, factory: Callable[[], ValueT]) -> ValueT: ...
    def open(self, factory: Scoped) -> Any:
        """Do the same as `enter` for code that cannot wait, such as a plain function's in a worker thread.

        Raises:
            ToolCancelled: if the call was stopped before the thing was there.
            TypeError: if the thing has to be awaited.
        """
        if self.scope is None:
            self.scope = CallScope()
        return self.scope.open(factory, self)

    def hang_up(self) -> None:
        """Free the caller's connection while a long call goes on; the caller comes back for the answer.

        It does something for clients over HTTP whose revision lets them come back, and nothing for all others.
        """
        self.caller.hang_up()
