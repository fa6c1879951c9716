"""Per-call providers of a container: principal, cancellation, call and clock."""

import asyncio
import gc
import weakref
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from dependency_injector import containers, providers

from axolotl_core import Context, ITool, NoArguments, Principal, ToolError, prompt, resource, tool
from axolotl_core.calls.cancellation import CancellationToken
from axolotl_core.calls.scope import current_call
from axolotl_server import connect
from axolotl_server.call_providers import call_cancellation, call_context, call_principal
from tests.support.call_resources import Ledger
from tests.support.servers.serving import until
from tests.support.tools import container_of


@dataclass
class Session:
    """A unit of work of one call."""

    principal: Principal
    cancellation: CancellationToken
    context: Context


class Transfer(ITool[NoArguments, dict[str, Any]]):
    """Uses a session for each call."""

    name = "transfer"

    def __init__(self, session: Any) -> None:
        self._session = session
        self.sessions: list[Session] = []

    async def execute(self, arguments: NoArguments, context: Context) -> dict[str, Any]:
        session: Session = await context.enter(self._session)
        self.sessions.append(session)
        assert session.context is context
        assert session.cancellation is context.cancellation
        return {"subject": session.principal.subject}


class Container(containers.DeclarativeContainer):
    """A tool with a session per call."""

    session = providers.Factory(Session, principal=call_principal, cancellation=call_cancellation, context=call_context)
    transfer = providers.Singleton(Transfer, session.provider)
    tools = providers.List(transfer)


async def test_a_container_creates_objects_per_call() -> None:
    """A session provider gets the principal, the cancellation and the call injected."""
    container = Container()
    async with connect(container, principal=Principal("ada")) as client:
        first = (await client.call("transfer")).structured
        await client.call("transfer")
    assert first["subject"] == "ada"
    one, other = container.transfer().sessions
    assert one is not other


def test_per_call_providers_fail_outside_of_a_call() -> None:
    """Per-call providers fail outside of a call."""
    with pytest.raises(LookupError):
        current_call()
    with pytest.raises(LookupError):
        call_principal()


async def test_the_body_of_a_factory_knows_its_call() -> None:
    """Coroutines and generators still know their call when they run later."""
    subjects: list[str] = []

    async def awaited() -> str:
        await asyncio.sleep(0)
        return current_call().principal.subject

    @asynccontextmanager
    async def waiting() -> AsyncIterator[str]:
        await asyncio.sleep(0)
        yield current_call().principal.subject

    @contextmanager
    def plain() -> Iterator[str]:
        yield current_call().principal.subject

    @tool
    async def work(context: Context) -> None:
        subjects.extend([await context.enter(awaited), await context.enter(waiting), await context.enter(plain)])
        with pytest.raises(LookupError):
            current_call()

    @tool
    def work_in_thread(context: Context) -> None:
        subjects.append(context.open(plain))

    async with connect(container_of(work, work_in_thread), principal=Principal("ada")) as client:
        await client.call("work")
        await client.call("work_in_thread")
    assert subjects == ["ada"] * 4


async def test_calls_at_the_same_time_have_their_own() -> None:
    """Concurrent calls have separate objects."""

    @asynccontextmanager
    async def own() -> AsyncIterator[object]:
        mine = current_call().request_id
        for _ in range(5):
            await asyncio.sleep(0)
            assert current_call().request_id == mine
        yield mine

    @tool
    async def work(context: Context) -> bool:
        return await context.enter(own) == context.request_id

    async with connect(container_of(work)) as client:
        outcomes = await asyncio.gather(*(client.call("work") for _ in range(100)))
    assert all(outcome.structured is True for outcome in outcomes)


async def test_prompts_and_resources_have_scopes_too() -> None:
    """Prompts and resources can have per-call objects too."""
    ledger = Ledger()

    @prompt
    async def speak(context: Context) -> str:
        return (await context.enter(ledger.waiting("of a prompt"))).name

    @resource("scoped://page")
    def page(context: Context) -> str:
        return context.open(ledger.plain("of a resource")).name

    container = container_of()
    container.prompts = providers.List(providers.Object(speak))
    container.resources = providers.List(providers.Object(page))
    async with connect(container) as client:
        assert (await client.get_prompt("speak")).text == "of a prompt"
        assert (await client.read_resource("scoped://page")).text == "of a resource"
    assert sorted(ledger.order) == ["of a prompt", "of a resource"]


@pytest.mark.parametrize("kind", ["coroutine", "manager"])
async def test_a_synchronous_function_cannot_open_an_asynchronous_resource(
    kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A synchronous function that opens an asynchronous resource gets an explanation in the log."""
    ledger = Ledger()

    async def make() -> str:
        return "never"

    @tool
    def work(context: Context) -> None:
        context.open(make if kind == "coroutine" else ledger.waiting("session"))

    async with connect(container_of(work)) as client:
        assert (await client.call("work")).is_error
    assert "await context.enter" in caplog.text
    assert ledger.made == []


async def test_nothing_is_kept() -> None:
    """After a call, nothing keeps a reference to its objects, whether it failed or not."""
    ledger = Ledger()
    kept: list[weakref.ref[Any]] = []

    @tool
    async def work(context: Context, fail: bool) -> None:
        kept.append(weakref.ref(await context.enter(ledger.waiting("session"))))
        if fail:
            raise ToolError("no")

    async with connect(container_of(work)) as client:
        for fail in (False, True):
            await client.call("work", {"fail": fail})
        await until(lambda: len(ledger.ended) == 2)
        ledger.ended.clear()
        gc.collect()
        assert [one() for one in kept] == [None, None]
