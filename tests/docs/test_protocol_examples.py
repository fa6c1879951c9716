"""The examples of prompts, resources, questions, notifications and extensions."""

import importlib
import json
import logging
import tomllib
from collections.abc import Sequence
from typing import Any

import pytest

from axolotl_core.content import TextContent
from axolotl_core.questions.question import Root
from axolotl_core.questions.sampling import Sample, ToolUse
from axolotl_server import RemoteError, connect
from axolotl_server.client.replies import ACCEPT, CANCEL, Answer, Question
from tests.support.docs.pages import EXAMPLES, blocks
from tests.support.servers.probed_server import probed
from tests.support.servers.serving import until


def load(name: str) -> Any:
    """Import an example."""
    return importlib.import_module(name)


def is_played(script: str) -> bool:
    """Return whether a page shows the output of a script, which test_console.py checks."""
    return any(f"$ python {script}.py\n" in block.text for block in blocks("console"))


async def test_reviews() -> None:
    """The first prompt lists its arguments with the descriptions of its docstring."""
    async with connect(load("reviews").Container()) as client:
        [listed] = await client.list_prompts()
    assert listed["arguments"] == [
        {"name": "language", "description": "The programming language of the code.", "required": True},
        {"name": "strict", "description": "Whether to report minor issues too."},
    ]


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("plan_journey", {"city": "Rome", "day": "2026-12-31"}, "Plan a slow Thursday in Rome for one person."),
        ("PLAN_journey", {"city": "Rome", "day": "2026-12-31", "travelers": "2", "pace": "busy"}, "Plan a busy"),
        ("summarize", {"text": "tea"}, "Summarize in one sentence: tea"),
        ("answer_letter", {"number": "1"}, "Answer this letter: Where is my parcel?"),
    ],
)
async def test_prompts(name: str, arguments: dict[str, str], expected: str) -> None:
    """Arguments are strings and are converted."""
    async with connect(load("prompts").Container()) as client:
        assert (await client.get_prompt(name, arguments)).text.startswith(expected)


@pytest.mark.parametrize(
    ("name", "arguments", "code", "expected"),
    [
        ("plan_journey", {"city": "Rome", "day": "tomorrow"}, -32602, "day: "),
        ("plan_journey", {"city": "Rome", "day": "2026-12-31", "pace": "Slow"}, -32602, "pace: "),
        ("plan_journey", {"ctiy": "Rome"}, -32602, "ctiy: unknown argument"),
        ("plan_journeys", {}, -32602, "did you mean 'plan_journey'"),
        ("answer_letter", {"number": "2"}, -32603, "There is no letter 2."),
    ],
)
async def test_prompts_that_fail(name: str, arguments: dict[str, str], code: int, expected: str) -> None:
    """Prompt failures are protocol errors."""
    async with connect(load("prompts").Container()) as client:
        with pytest.raises(RemoteError, match=expected) as caught:
            await client.get_prompt(name, arguments)
    assert caught.value.code == code


async def test_messages_of_prompts() -> None:
    """A prompt can return several messages and a description."""
    async with connect(load("prompts").Container()) as client:
        talk = await client.get_prompt("discuss", {"topic": "tea"})
        summary = await client.get_prompt("summarize", {"text": "tea"})
    assert [(one["role"], one["content"]["type"]) for one in talk.messages] == [
        ("user", "resource"),
        ("assistant", "text"),
        ("user", "text"),
    ]
    assert summary.description == "A summary of 3 characters"


async def test_handbook() -> None:
    """A resource with variables is listed as a template."""
    async with connect(load("handbook").Container()) as client:
        assert [one["uri"] for one in await client.list_resources()] == ["handbook://contents"]
        templates = await client.list_resource_templates()
        assert [one["uriTemplate"] for one in templates] == ["handbook://pages/{number}"]
        assert (await client.read_resource("handbook://contents")).text == "[1,2]"


@pytest.mark.parametrize(
    ("uri", "mime_type", "expected"),
    [
        ("license://text", "text/plain", "from pathlib import Path"),
        ("db://public/orders/columns", "application/json", '["number","state"]'),
        ("search://pages", "text/plain", "the first 10 pages with ''"),
        ("search://pages?limit=3&text=hot%20tea", "text/plain", "the first 3 pages with 'hot tea'"),
        ("tree://a/b%2Fc", "text/plain", "the leaf a/b/c"),
        ("shelf://9780141439518", "text/plain", "Pride and Prejudice"),
    ],
)
async def test_resources(uri: str, mime_type: str, expected: str) -> None:
    """All resources can be read, with the documented types."""
    async with connect(load("resources").Container()) as client:
        answer = await client.read_resource(uri)
    assert answer.text.startswith(expected)
    assert answer.contents[0]["mimeType"] == mime_type
    assert answer.contents[0]["uri"] == uri


async def test_forms_of_resources() -> None:
    """Bytes are blobs, and several contents have their own URIs."""
    async with connect(load("resources").Container()) as client:
        assert (await client.read_resource("pixel://red")).blobs == [b"GIF89a"]
        album = await client.read_resource("album://all")
    assert [one["uri"] for one in album.contents] == ["album://all/title", "album://all/1"]


@pytest.mark.parametrize(
    "uri",
    ["db://x/y/columns", "tree://a/../b", "tree://%2e%2e/b", "tree:///etc", "search://pages?z=1", "license://Text"],
)
async def test_resources_that_are_not_there(uri: str) -> None:
    """A URI that does not exist, or leaves its base, is not found."""
    async with connect(load("resources").Container()) as client:
        with pytest.raises(RemoteError, match="Resource not found"):
            await client.read_resource(uri)


async def test_completions() -> None:
    """Completing something unknown is an error."""
    assert is_played("completions")
    async with connect(load("completions").Container()) as client:
        assert (await client.complete("city", prompt="visit")).values == []
        with pytest.raises(RemoteError, match="there is no argument 'river'"):
            await client.complete("river", prompt="visit")


async def test_booking() -> None:
    """A client without elicitation gets an error that names the missing capability."""
    async with connect(load("booking").Container()) as client:
        with pytest.raises(RemoteError, match="capability elicitation") as caught:
            await client.call("book", {"flight": "AX 7"})
    assert caught.value.code == -32021
    assert caught.value.data == {"requiredCapabilities": {"elicitation": {"form": {}}}}


def test_booking_client() -> None:
    """The official client answers in both eras."""
    assert is_played("booking_client")


def test_buying() -> None:
    """Code before a question runs again, code after it does not."""
    assert is_played("buying")


async def test_ordering() -> None:
    """A step is done once, although the code runs again after the question."""
    container = load("ordering").Container()
    async with connect(container, answer=lambda question: {"street": "1 Pond Lane"}) as client:
        assert (await client.call("order", {"card": "1"})).text == "Receipt 1, sent to 1 Pond Lane"
    assert len(container.bank().charged) == 1


def replies(*given: Answer) -> Any:
    """Answer one question after the other."""
    waiting = iter(given)
    return lambda question: next(waiting)


@pytest.mark.parametrize(
    ("tool", "given", "expected"),
    [
        ("rate", [{"stars": 5}], "5 stars"),
        ("rate", [CANCEL], "no rating: cancel"),
        ("connect_account", [ACCEPT], "the page is open; call me again when you have signed in"),
        ("name_cat", ["Tiger"], "Tiger (by in-process)"),
        ("list_projects", [[Root("file:///a", "alpha"), Root("file:///b")]], '["alpha","file:///b"]'),
    ],
)
async def test_asking(tool: str, given: Sequence[Answer], expected: str) -> None:
    """Each kind of question is asked and answered."""
    arguments = {"colour": "red"} if tool == "name_cat" else {}
    async with connect(load("asking").Container(), answer=replies(*given)) as client:
        assert (await client.call(tool, arguments)).text == expected


async def test_asking_nobody() -> None:
    """A tool can work without an answer."""
    async with connect(load("asking").Container()) as client:
        assert (await client.call("rate")).text == "no rating: your client cannot ask you"


async def test_asking_with_a_form() -> None:
    """The form describes its fields, and the answer is validated."""
    asked: list[Question] = []

    def fill_in(question: Question) -> Answer:
        asked.append(question)
        return {"name": "Ada", "day": "2026-12-31", "milk": "oat", "extras": ["sugar"]}

    async with connect(load("asking").Container(), answer=fill_in) as client:
        order = (await client.call("order")).structured
    fields = asked[0].params["requestedSchema"]["properties"]
    assert fields["milk"]["oneOf"][1] == {"const": "oat", "title": "Oat milk"}
    assert fields["day"]["format"] == "date"
    assert order == {
        "name": "Ada",
        "day": "2026-12-31",
        "size": "s",
        "milk": "oat",
        "extras": ["sugar"],
        "note": None,
    }


async def test_asking_at_once() -> None:
    """Three questions form one round, as shown on the page."""
    capabilities: dict[str, Any] = {"elicitation": {}, "sampling": {}, "roots": {}}
    shown = next(block.text for block in blocks("json") if "inputRequests" in block.text)
    async with connect(load("asking").Container(), capabilities=capabilities) as client:
        result = await client.request("tools/call", {"name": "welcome"})
    del result["_meta"]
    assert {**result, "requestState": "…"} == json.loads(shown)


async def test_asking_with_tools() -> None:
    """The model calls a tool and continues with its result."""
    use = Sample("assistant", (ToolUse("1", "population", {"city": "Graz"}),), "m", "toolUse")
    answer = Sample("assistant", (TextContent("Graz has 300 000."),), "m")
    heard: list[Question] = []

    def sample(question: Question) -> Sample:
        heard.append(question)
        return answer if len(question.params["messages"]) > 1 else use

    async with connect(load("asking").Container(), answer=sample) as client:
        assert (await client.call("compare", {"question": "How big is Graz?"})).text == "Graz has 300 000."
    [outcome] = [heard[-1].params["messages"][-1]["content"]]
    assert outcome["content"] == [{"type": "text", "text": "300 000"}]


async def test_asking_by_a_prompt() -> None:
    """A prompt can ask like a tool."""
    async with connect(load("asking").Container(), answer=replies({"name": "Ada"})) as client:
        assert (await client.get_prompt("write_letter")).text == "Write a letter, signed by Ada."


async def test_countdown() -> None:
    """Progress and log messages reach the caller."""
    progress: list[Any] = []
    logged: list[Any] = []
    async with connect(load("countdown").Container()) as client:
        await client.call("count_down", {"start": 2}, on_progress=progress.append, on_log=logged.append)
    assert [one["message"] for one in progress] == ["1 to go", "0 to go"]
    assert logged == [{"level": "info", "data": {"start": 2}, "logger": "rocket"}]


def test_board() -> None:
    """A subscriber is notified when a resource changes."""
    assert is_played("board")


def test_tariffs() -> None:
    """Every result has cache hints."""
    assert is_played("tariffs")


def test_receipts() -> None:
    """An extension is declared, and its method answers clients that support it."""
    assert is_played("receipts")


def test_rates() -> None:
    """An extension has a method, a layer, a service and a section of the settings."""
    assert is_played("rates")


async def test_the_health_of_rates() -> None:
    """Its health check is one of the server's, and its service ends with the server."""
    rates = load("rates").Rates()
    settings = tomllib.loads((EXAMPLES / "rates.toml").read_text(encoding="utf-8"))
    async with probed(extensions=(rates,), settings=settings) as server:
        await until(lambda: bool(rates.known))
        assert (await server.checks())["rates"] == "ok"
        rates.known = {}
        assert (await server.checks())["rates"] == "degraded"
        assert not rates.refreshing.done()
    assert rates.refreshing.cancelled()


def test_clock_app() -> None:
    """A tool names the page that shows its results."""
    assert is_played("clock_app")


async def test_traced(caplog: pytest.LogCaptureFixture) -> None:
    """A layer knows the trace of each call."""
    caplog.set_level(logging.INFO, "acme.calls")
    await load("traced").main()
    assert [record.message for record in caplog.records] == [
        "tool greet, trace 0af7651916cd43dd8448eb211c80319c",
        "tool greet, trace none",
    ]


async def test_refunding() -> None:
    """The skill of the folder is listed with its letter."""
    settings = EXAMPLES / "guarded" / "skills.toml"
    async with connect(load("refunding").Container(), settings=settings) as client:
        [skill] = await client.list_skills()
        assert skill["frontmatter"]["metadata"] == {"version": "2"}
        letter = await client.read_resource(skill["resources"][1]["uri"])
    assert letter.text == "Dear {name}, you get back {amount}.\n"


async def test_daily_report() -> None:
    """A dynamic skill has no digests, and its front matter is that of its SKILL.md."""
    async with connect(load("daily_report").Container()) as client:
        [skill] = await client.list_skills()
        page = await client.read_resource(skill["uri"])
    assert skill["resources"] == "dynamic"
    assert page.text.startswith("---\nname: daily\ndescription: Write the daily report.\n---\n")
