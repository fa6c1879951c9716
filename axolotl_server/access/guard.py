"""The guard in front of methods that name a feature, and of notifications about resources."""

import asyncio
from collections.abc import Awaitable, Sequence
from contextlib import AbstractContextManager, nullcontext
from hashlib import blake2b
from typing import Any, Final

from msgspec import UNSET

from axolotl_core.calls.cancellation import CancelReason
from axolotl_core.errors import InternalError, ToolError
from axolotl_core.features.spec import FeatureSpec
from axolotl_core.layers import Call
from axolotl_core.policies.access import with_decision
from axolotl_core.protocol.identity import Principal
from axolotl_core.protocol.result_keys import error_data
from axolotl_core.protocol.wire import encode
from axolotl_server.access.authorization import (
    Authorization,
    Denial,
    GuardVerdict,
    MissingScopes,
    forbidden,
    subject_of,
)
from axolotl_server.calls.binding import encode_error
from axolotl_server.calls.feature_method import FeatureMethod, RequestTarget
from axolotl_server.features.catalogue import Catalogue
from axolotl_server.features.resources import ResourceMethods
from axolotl_server.features.tools import ToolCatalogue
from axolotl_server.protocol.connection import Audience, IRunning, WaitingRequest
from axolotl_server.protocol.eras.era import Method, Row
from axolotl_server.protocol.replies import CALLER_LEFT, reply_to_nobody
from axolotl_server.protocol.request import Request

_RUNS_NOTHING: Final = "resources/subscribe"


class Guard:
    """Decides whether the principal may use a feature before its method looks at the request."""

    def __init__(self, authorization: Authorization, catalogues: Sequence[Catalogue[Any, Any]]) -> None:
        self._authorization = authorization
        self._catalogues = catalogues

    def in_front_of(self, row: Row) -> Method:
        """Put the guard in front of a method whose requests name a feature."""
        authorization, method, feature_method = self._authorization, row.answer, row.feature
        if feature_method is None:
            return method
        runs = row.method != _RUNS_NOTHING
        passed = None if authorization.is_async else authorization.passed
        only_scopes, target_of = authorization.only_scopes, feature_method.target_of

        def guarded(request: Request) -> Awaitable[bytes | None]:
            """Pass a request on at once if the rules of the settings allow it; anything else takes a coroutine."""
            target = target_of(request)
            if target.binding is None:
                return self._refuse_unknown(feature_method, request)
            spec = request.exchange.subject = subject_of(target.binding.spec)
            if only_scopes and not spec.feature.scopes:
                return method(request)
            if passed is not None:
                verdict = request.verdict = passed(request.exchange.principal, spec)
                if verdict is not None:
                    return method(request)
            return self._judge(method, feature_method, spec, request, runs=runs)

        return guarded

    async def _judge(
        self, method: Method, feature_method: FeatureMethod, spec: FeatureSpec, request: Request, *, runs: bool
    ) -> bytes | None:
        """Ask for a decision, and run the method or end the request with an error."""
        if self._authorization.is_async:
            waiting = WaitingRequest(request.exchange, spec)
            with _registered(waiting, request):
                denial = await self._decide(feature_method, spec, request)
            if waiting.reason is not None:
                return _reply_to_stopped(request, waiting.reason)
        else:
            denial = await self._decide(feature_method, spec, request)
        request.verdict = GuardVerdict(spec, denial)
        if denial is None:
            return await method(request)
        assert request.target is not None
        try:
            return await self._refuse(request.target, spec, denial, request, runs=runs)
        finally:
            request.verdict = None  # the error refers to the request, which the garbage collector does not track

    async def _decide(self, feature_method: FeatureMethod, spec: FeatureSpec, request: Request) -> Denial | None:
        """Return the error that ends a request, None if it is allowed."""
        decision = await self._authorization.decide(request.exchange.principal, spec)
        if decision.allowed is True:
            return None
        if self._authorization.hides_denied:
            return with_decision(await feature_method.not_found(request), decision)
        challenge = request.exchange.challenge(decision.scopes) if isinstance(decision, MissingScopes) else None
        return forbidden(spec, decision) if challenge is None else with_decision(challenge, decision)

    async def _refuse_unknown(self, feature_method: FeatureMethod, request: Request) -> bytes | None:
        """Raise the error for a feature that does not exist.

        Where a decision takes time, one is made anyway: the time must not tell a denied feature from a missing one.
        """
        specs = (binding.spec for catalogue in self._catalogues for binding in catalogue.bindings())
        other = next(specs, None) if self._authorization.is_async else None
        waiting = WaitingRequest(request.exchange)
        with _registered(waiting, request):
            error = await feature_method.not_found(request)
            if other is not None:
                await self._authorization.decide(request.exchange.principal, other)
        if waiting.reason is not None:
            return _reply_to_stopped(request, waiting.reason)
        raise error

    async def _refuse(
        self, target: RequestTarget, spec: FeatureSpec, denial: Denial, request: Request, *, runs: bool
    ) -> bytes | None:
        """End a request with an error, after the outer layers of the feature have seen it."""
        try:
            if runs:
                await _pass_layers(target, request)
            raise denial
        except ToolError as error:
            if spec.kind == "tool":
                return encode_error(error.message, error.meta, request)
            raise InternalError(error.message, data=error_data(error.meta)) from None


async def _pass_layers(target: RequestTarget, request: Request) -> None:
    """Make a call that ends at the authorization layer, which knows the verdict."""
    binding, task = target.binding, asyncio.current_task()
    assert binding is not None
    assert task is not None
    assert request.head.id is not UNSET
    if any(isinstance(layer, Authorization) for layer in binding.layers):  # otherwise the code would run
        principal = request.exchange.principal
        spec, uri, raw = binding.spec, target.uri, target.raw
        await binding.invoke(Call(request.head.id, request, principal, uri=uri, spec=spec, raw=raw, task=task))


def _registered(waiting: WaitingRequest, request: Request) -> AbstractContextManager[None]:
    """Let the client cancel a request that waits for a decision; its method refuses an ID that is in use."""
    connection, request_id = request.connection, request.head.id
    assert request_id is not UNSET
    if connection is None or request_id in connection.calls:
        return nullcontext()
    return connection.running(request_id, waiting)


def _reply_to_stopped(request: Request, reason: CancelReason) -> bytes | None:
    """Reply to a caller that has left like a call does; for others, raise InternalError."""
    if reason in CALLER_LEFT:
        return reply_to_nobody(request, reason)
    meta = {"reason": "shutdown", "retryAfterMs": 1000}
    raise InternalError("The server is shutting down; try again", data=meta)


class StreamGuard:
    """Decides who may resume a stream, hear a task, and cancel or answer a request of the same session.

    The ID of a stream has a mark: the feature of its request, which whoever resumes it must be allowed to use then. A
    stream that is not about one feature, or began before that was known, is marked with the scopes and roles of its
    caller.
    """

    def __init__(
        self, authorization: Authorization, tools: ToolCatalogue, others: Sequence[Catalogue[Any, Any]]
    ) -> None:
        self._authorization = authorization
        self._tools = tools
        self._catalogues = (tools, *others)

    def mark(self, principal: Principal, subject: FeatureSpec | None) -> str:
        """Return the mark of a stream for a message of a principal."""
        if subject is not None:
            return _digest(subject.kind, subject.name)
        return _digest(sorted(principal.scopes), sorted(principal.roles))

    async def may_resume(self, mark: str, principal: Principal) -> bool:
        """Tell whether a principal may resume a stream with a mark now; nobody may if its feature is gone."""
        if mark == self.mark(principal, None):
            return True
        bindings = (binding for catalogue in self._catalogues for binding in catalogue.bindings())
        subject = next((one.spec for one in bindings if self.mark(principal, one.spec) == mark), None)
        return subject is not None and (await self._authorization.decide(principal, subject)).allowed is True

    async def may_control(self, running: IRunning, principal: Principal) -> bool:
        """Tell whether a principal may cancel a request and answer its questions: it needs access to its feature.

        For a request that is not about one feature, it must have the scopes and roles of the caller.
        """
        if running.spec is None:
            return self.mark(principal, None) == self.mark(running.principal, None)
        return (await self._authorization.decide(principal, subject_of(running.spec))).allowed is True

    def may_hear(self, listener: Principal, audience: Audience) -> bool:
        """Tell whether a principal may hear what a task sends: it needs access to its tool.

        Where a decision may take time, it must have the scopes and roles of the caller instead.
        """
        if self._authorization.is_async:
            return (listener.scopes, listener.roles) == (audience.scopes, audience.roles)
        binding = self._tools.find(audience.tool)
        return binding is not None and self._authorization.passed(listener, binding.spec) is not None


def _digest(*parts: str | list[str]) -> str:
    return blake2b(encode(parts), digest_size=8).hexdigest()


class ResourceWatch:
    """Restricts notifications about resources to principals that may read them."""

    def __init__(self, authorization: Authorization, resources: ResourceMethods) -> None:
        self._authorization = authorization
        self._resources = resources

    async def readable_uris(self, principal: Principal, uris: Sequence[str]) -> tuple[str, ...]:
        """Leave out the URIs that the principal may not read, or raise InternalError if the authorizer failed."""
        found: dict[str, FeatureSpec] = {}
        for uri in uris:
            binding = self._resources.at_uri(uri).binding
            if binding is not None:
                found[uri] = binding.spec
            await asyncio.sleep(0)  # a long URI takes milliseconds, in which other requests wait
        specs = list(dict.fromkeys(found.values()))
        allowed = dict(zip(specs, await self._authorization.allowed(principal, specs), strict=True))
        return tuple(uri for uri in uris if uri in found and allowed[found[uri]])

    def audience_of(self, uri: str, parents: frozenset[str]) -> frozenset[str]:
        """Return the URIs whose subscribers are notified of a change: the URI, and parents that are the same resource.

        A subscriber of a directory is notified of its files if one template matches both. Another resource could be one
        that the subscriber may not read.
        """
        at_uri = self._resources.at_uri
        binding = at_uri(uri).binding if parents else None
        return frozenset(one for one in parents if one == uri or at_uri(one).binding is binding is not None)
