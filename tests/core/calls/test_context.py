"""Context and Call: the call as its code and the layers see it."""

import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest
from pydantic import BaseModel

from axolotl_core import Context, Declined, Principal
from axolotl_core.calls.cancellation import CancelReason
from axolotl_core.errors import MissingCapability, ToolCancelled
from axolotl_core.features.spec import Limits, ToolSpec
from axolotl_core.layers import Call
from axolotl_core.protocol.identity import ANONYMOUS, Implementation
from axolotl_core.protocol.messages import TraceContext
from axolotl_core.questions.question import InvalidAnswer, Root
from tests.support.core.callers import Caller
from tests.support.core.sample_tools import Add

LIMITS = Limits(timeout_seconds=1.0, max_concurrency=None, execution="loop", coerce_arguments=False)
SPEC = ToolSpec.of(Add(), LIMITS)


FORM: dict[str, Any] = {"elicitation": {"form": {}}}
URL: dict[str, Any] = {"elicitation": {"url": {}}}
SAMPLING: dict[str, Any] = {"sampling": {}}
ROOTS: dict[str, Any] = {"roots": {}}
HELLO = {"role": "assistant", "content": {"type": "text", "text": "hello"}, "model": "m"}

Asking = Callable[[Context], Awaitable[object]]


class Who(BaseModel):
    """A form."""

    name: str


class Task:
    """Counts cancellations."""

    cancelled = 0

    def cancel(self) -> None:
        self.cancelled += 1


def test_a_context_can_be_made_by_hand() -> None:
    """A unit test of a tool needs nothing but `Context()`."""
    context = Context()
    context.report_progress(1)
    context.raise_if_cancelled()
    assert (context.client, context.principal, context.deadline) == (None, ANONYMOUS, None)
    assert (context.cancelled, context.cancel_reason, context.remaining_seconds) == (False, None, None)


def test_contexts_share_nothing() -> None:
    """Cancelling one call does not cancel another."""
    first, second = Context(), Context()
    first.cancellation.cancel(CancelReason.CLIENT)
    assert (first.cancelled, second.cancelled) == (True, False)


def test_a_context_has_request_principal_and_client() -> None:
    """Request id, principal and client are those of the call."""
    principal = Principal("alice", tenant="acme", scopes=frozenset({"read"}))
    context = Context(request_id="r1", caller=Caller(), principal=principal)
    assert (context.request_id, context.principal) == ("r1", principal)
    assert context.client == Implementation("inspector", "1")


def test_progress_goes_to_the_caller() -> None:
    """Value, total and message are passed on; the last two may be missing."""
    caller = Caller()
    context = Context(caller=caller)
    context.report_progress(1)
    context.report_progress(2, 4, "half")
    assert caller.progress == [(1, None, None), (2, 4, "half")]


def test_a_cancelled_context() -> None:
    """A tool learns that it should stop, and why."""
    context = Context()
    context.cancellation.cancel(CancelReason.TIMEOUT)
    assert (context.cancelled, context.cancel_reason) == (True, CancelReason.TIMEOUT)
    with pytest.raises(ToolCancelled):
        context.raise_if_cancelled()


@pytest.mark.parametrize(
    ("ahead", "least", "most"),
    [pytest.param(100.0, 90.0, 100.0, id="to-come"), pytest.param(-5.0, 0.0, 0.0, id="past")],
)
def test_the_time_left_is_never_negative(ahead: float, least: float, most: float) -> None:
    """A tool can ask how long it may still work."""
    context = Context()
    context.deadline = time.monotonic() + ahead
    assert context.remaining_seconds is not None
    assert least <= context.remaining_seconds <= most


def make_call(task: Task) -> Call:
    """Make a call as the server does."""
    return Call(request_id=1, caller=Caller(), principal=ANONYMOUS, spec=SPEC, raw=b"{}", task=task)


def test_stopping_a_call_cancels_its_task_once() -> None:
    """The first reason ends the task, later ones do not disturb it again."""
    task = Task()
    call = make_call(task)
    call.stop(CancelReason.TIMEOUT)
    call.stop(CancelReason.CLIENT)
    assert (task.cancelled, call.cancel_reason) == (1, CancelReason.TIMEOUT)


def test_a_broken_callback_does_not_keep_a_call_running() -> None:
    """The task is cancelled although a tool's callback raises."""
    task = Task()
    call = make_call(task)
    call.cancellation.on_cancel(lambda _: 1 / 0)
    call.stop(CancelReason.TIMEOUT)
    assert task.cancelled == 1


def test_log_messages_go_to_the_caller() -> None:
    """Level, data and logger are passed on as they are; the logger may be missing."""
    caller = Caller()
    context = Context(caller=caller)
    context.log("info", {"a": 1})
    context.log("emergency", None, "db")
    assert caller.logged == [("info", {"a": 1}, None), ("emergency", None, "db")]


async def test_a_form_is_asked_and_read() -> None:
    """The question shows the model, the answer is one."""
    caller = Caller(elicitation={"action": "accept", "content": {"name": "Ada"}})
    context = Context(caller=caller)
    assert await context.ask(Who, "Who are you?", key="who") == Who(name="Ada")
    [(asker, question, key)] = caller.asked
    assert (asker, key, question.method, question.requires) == (context, "who", "elicitation/create", FORM)
    assert question.params["message"] == "Who are you?"
    assert list(question.params["requestedSchema"]["properties"]) == ["name"]


async def test_a_page_is_asked_to_be_opened() -> None:
    """The question has the URL, and agreement is all the answer there is."""
    caller = Caller(elicitation={"action": "accept"})
    context = Context(caller=caller)
    await context.ask_url("https://example.com/pay", "Pay here")
    await context.ask_url("https://example.com/pay", "Pay here", key="pay", reference="order-5")
    [(_, question, key), (_, again, other_key)] = caller.asked
    assert (question.params["url"], question.requires, key) == ("https://example.com/pay", URL, None)
    assert (again.reference, question.reference, other_key) == ("order-5", None, "pay")


def test_a_completed_page_is_reported() -> None:
    """The reference is the one that the question had."""
    caller = Caller()
    Context(caller=caller).url_completed("order-5")
    assert caller.completed == ["order-5"]


async def test_a_sample_is_asked_and_read() -> None:
    """Options reach the question, and the answer has its text."""
    caller = Caller(sampling=HELLO)
    sample = await Context(caller=caller).sample("Greet", max_tokens=5, system_prompt="Be brief", key="greeting")
    assert (sample.text, sample.model) == ("hello", "m")
    [(_, question, key)] = caller.asked
    assert (question.method, question.requires, key) == ("sampling/createMessage", SAMPLING, "greeting")
    assert (question.params["maxTokens"], question.params["systemPrompt"]) == (5, "Be brief")


async def test_roots_are_asked_and_read() -> None:
    """The answer is a tuple of roots."""
    caller = Caller(roots={"roots": [{"uri": "file:///home", "name": "Home"}]})
    assert await Context(caller=caller).roots(key="r") == (Root("file:///home", "Home"),)
    [(_, question, key)] = caller.asked
    assert (question.method, question.requires, key) == ("roots/list", ROOTS, "r")


@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_a_user_may_leave_a_question_unanswered(action: str) -> None:
    """The tool learns how it was refused."""
    context = Context(caller=Caller(elicitation={"action": action}))
    with pytest.raises(Declined) as of_form:
        await context.ask(Who, "Who?")
    with pytest.raises(Declined) as of_page:
        await context.ask_url("https://example.com", "Look")
    assert (of_form.value.action, of_page.value.action) == (action, action)


async def test_malformed_answers_are_refused() -> None:
    """Malformed answers raise InvalidAnswer."""
    context = Context(caller=Caller(elicitation={"action": "accept", "content": {"name": 5}}, roots=[], sampling=1))
    with pytest.raises(InvalidAnswer, match="name"):
        await context.ask(Who, "Who?")
    with pytest.raises(InvalidAnswer):
        await context.roots()
    with pytest.raises(InvalidAnswer):
        await context.sample("x", max_tokens=1)


@pytest.mark.parametrize(
    ("asking", "required"),
    [
        pytest.param(lambda context: context.ask(Who, "Who?"), FORM, id="form"),
        pytest.param(lambda context: context.ask_url("https://example.com", "x"), URL, id="url"),
        pytest.param(lambda context: context.sample("x", max_tokens=1), SAMPLING, id="sample"),
        pytest.param(lambda context: context.roots(), ROOTS, id="roots"),
    ],
)
async def test_questions_without_a_caller(asking: Asking, required: Mapping[str, Any]) -> None:
    """A context without a caller raises MissingCapability with the required capability."""
    with pytest.raises(MissingCapability, match="There is no caller to ask") as refused:
        await asking(Context())
    assert refused.value.data == {"requiredCapabilities": required}


def test_notifications_without_a_caller() -> None:
    """Without a caller, progress and log messages are discarded."""
    context = Context()
    context.log("error", object(), "x")
    context.url_completed("x")
    context.hang_up()
    assert (context.trace, context.uri, context.client_extension("com.example/x")) == (None, "", None)
    assert not any((context.can_ask, context.can_ask_url, context.can_sample, context.can_list_roots))


@pytest.mark.parametrize(
    ("capability", "can"),
    [
        pytest.param(FORM, "can_ask", id="form"),
        pytest.param(URL, "can_ask_url", id="url"),
        pytest.param(SAMPLING, "can_sample", id="sample"),
        pytest.param(ROOTS, "can_list_roots", id="roots"),
    ],
)
def test_a_tool_can_look_before_it_asks(capability: Mapping[str, Any], can: str) -> None:
    """Only questions that the client declared are possible."""
    caller = Caller()
    caller.capabilities = [capability]
    able = [
        name
        for name in ("can_ask", "can_ask_url", "can_sample", "can_list_roots")
        if getattr(Context(caller=caller), name)
    ]
    assert able == [can]


def test_trace_and_extensions_are_those_of_the_caller() -> None:
    """A tool can read the trace context, and the client's settings for an extension."""
    caller = Caller()
    caller.trace = TraceContext("00-" + "a" * 32 + "-" + "b" * 16 + "-01")
    caller.extensions = {"com.example/x": {"version": 2}}
    context = Context(caller=caller)
    assert context.trace is caller.trace
    assert context.client_extension("com.example/x") == {"version": 2}
    assert context.client_extension("com.example/y") is None


def test_hanging_up_is_up_to_the_caller() -> None:
    """The context passes `hang_up` on to the caller."""
    caller = Caller()
    Context(caller=caller).hang_up()
    assert caller.hung_up == 1


def test_a_call_is_a_context_of_its_uri() -> None:
    """A resource can read the requested URI."""
    call = Call(request_id=1, uri="a://b", spec=SPEC, raw=b"{}", task=Task())
    assert (call.uri, call.can_ask) == ("a://b", False)


async def test_visible_tools_without_a_server() -> None:
    """A context in a unit test has no tools."""
    assert await Context().visible_tools() == ()
