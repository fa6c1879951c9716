"""The server under test: every kind of feature, and secrets that neither a reply nor the log may contain."""

import asyncio
import hashlib
import math
from typing import Annotated, Any, Final, Literal

from dependency_injector import containers, providers
from pydantic import BaseModel

from axolotl_core import Context, ResourceNotFound, ToolError, prompt, resource, tool
from axolotl_core.policies.audit import Sensitive

HIDDEN: Final = "canary-of-an-exception-7e3f"
"""Part of every exception that the features raise. No reply may contain it."""
PRIVATE: Final = "canary-of-an-argument-52d9"
"""Sent in arguments. The log may not contain it."""
TOKEN: Final = "canary-of-a-token-c41b-aa0e93"
"""The key that clients send. Neither a reply nor the log may contain it."""
FAILING: Final = "failing"
"""The name of the features whose failure is logged as an error, as it should be."""

SETTINGS: Final[dict[str, Any]] = {
    "auth": {"api_keys": {"fuzz": {"hash": f"sha256:{hashlib.sha256(TOKEN.encode()).hexdigest()}"}}},
    "stdio": {"principal": {"subject": "fuzz"}},
    "http": {"sse_path": "/sse", "request_timeout_seconds": 2},
    "limits": {"timeout_seconds": 5, "ask_timeout_seconds": 5},
    "tasks": {"ttl_seconds": 2},
    "log": {"format": "json"},
}


class Answer(BaseModel):
    """A form."""

    word: str
    number: int = 0


@tool
async def echo(text: str = "x", times: int = 1) -> str:
    """Repeat a text."""
    return text * min(times, 3)


@tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool
async def total(values: list[float], labels: dict[str, str] | None = None) -> dict[str, float]:
    """Add numbers."""
    added = sum(values)
    if math.isinf(added):
        raise ToolError("The sum is too large")
    return {"sum": added, "labels": float(len(labels or {}))}


@tool
async def accept(data: Any = None) -> str:
    """Accept any value."""
    return type(data).__name__


@tool
async def keep(secret: Annotated[str, Sensitive()]) -> int:
    """Take a secret."""
    return len(secret)


@tool(name=FAILING)
async def failing_tool() -> str:
    """Fail."""
    raise RuntimeError(HIDDEN)


@tool
async def refusing() -> str:
    """Refuse."""
    raise ToolError("Not today")


@tool
async def asking(context: Context) -> str:
    """Ask the user."""
    return (await context.ask(Answer, "Which word?")).word[:10]


@tool
async def sampling(context: Context) -> str:
    """Ask a model."""
    return (await context.sample("What is best?", max_tokens=10)).text[:10]


@tool
async def reporting(context: Context) -> str:
    """Report progress and log."""
    for step in range(3):
        context.report_progress(step, 3, "working")
    context.log("warning", {"step": 3})
    return "done"


@tool
async def waiting() -> str:
    """Take a moment, so that the call can be cancelled."""
    await asyncio.sleep(0.02)  # sleeps: a call that takes a moment is what this tool is for
    return "done"


@tool
def threaded(text: str = "x") -> str:
    """Run in a thread."""
    return text[:10]


@tool(task_support="optional")
async def optional_task(text: str = "x") -> str:
    """Run as a task or not."""
    return text[:10]


@tool(task_support="required")
async def required_task(context: Context) -> str:
    """Run as a task that asks."""
    return (await context.ask(Answer, "Which word?")).word[:10]


@prompt
async def greet(name: str, style: Literal["short", "long"] = "short") -> str:
    """Greet somebody."""
    return f"Greet {name} ({style})"


@greet.completes("name")
def names(value: str) -> list[str]:
    """Suggest names."""
    return [name for name in ("Ada", "Alan", "Grace") if name.startswith(value)]


@prompt(name=FAILING)
async def failing_prompt() -> str:
    """Fail."""
    raise RuntimeError(HIDDEN)


@prompt
async def asking_prompt(context: Context) -> str:
    """Ask before rendering."""
    return (await context.ask(Answer, "About what?")).word[:10]


@resource("config://app")
async def config() -> dict[str, bool]:
    """The configuration."""
    return {"debug": True}


@resource("logo://app", mime_type="image/png")
async def logo() -> bytes:
    """The logo."""
    return b"\x89PNG\x00\xff"


@resource("failing://app", name=FAILING)
async def failing_resource() -> str:
    """Fail."""
    raise RuntimeError(HIDDEN)


@resource("users://{user_id}/profile{?full}")
async def profile(user_id: int, full: bool = False) -> dict[str, int | bool]:
    """The profile of a user."""
    return {"id": user_id, "full": full}


@resource("notes://{+path}")
async def note(path: str, context: Context) -> str:
    """A note."""
    if len(path) > 20:
        raise ResourceNotFound(context.uri)
    return path


_TOOLS: Final = (
    *(echo, add, total, accept, keep, failing_tool, refusing, asking, sampling, reporting, waiting, threaded),
    *(optional_task, required_task),
)


class Container(containers.DeclarativeContainer):
    """All features."""

    settings = providers.Object(SETTINGS)
    tools = providers.List(providers.Object(_TOOLS))
    prompts = providers.List(providers.Object((greet, failing_prompt, asking_prompt)))
    resources = providers.List(providers.Object((config, logo, failing_resource, profile, note)))
