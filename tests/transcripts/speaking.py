"""Tools, prompts and resources that send log messages and progress."""

import json
from typing import Any

from dependency_injector import containers, providers
from pydantic import BaseModel

from axolotl_core import Context, ITool, NoArguments, prompt, resource, tool
from axolotl_core.protocol.messages import LEVELS


class Thing(BaseModel):
    size: int


@tool
async def log_all(context: Context) -> str:
    """Log something of each level."""
    for level in LEVELS:
        context.log(level, f"it is {level}")  # type: ignore[arg-type]
    return "logged"


@tool
async def log_kinds(context: Context) -> str:
    """Log every kind of value."""
    values: list[Any] = ["text", 1, 1.5, None, True, ["a"], {"a": {"b": 1}}, Thing(size=3), {1, 2}.__class__]
    for value in values:
        context.log("error", value, logger="kinds")
    return "logged"


@tool(execution="thread")
def log_in_thread(context: Context) -> str:
    """Log from a worker thread."""
    context.log("warning", "in a thread", "thread")
    return "logged"


@prompt
async def log_prompt(context: Context) -> str:
    """Log while a prompt is rendered, and report progress."""
    context.log("warning", "in a prompt")
    context.report_progress(1, 2)
    return "logged"


@resource("logs://resource")
async def log_resource(context: Context) -> str:
    """Log while a resource is read, and report progress."""
    context.log("warning", "in a resource")
    context.report_progress(1, 2)
    return "logged"


class Trace(ITool[NoArguments, str]):
    name = "trace"
    description = "Tell the trace"

    async def execute(self, arguments: NoArguments, context: Context) -> str:
        trace = context.trace
        if trace is None:
            return "none"
        return f"{trace.trace_id} {trace.parent_id} {trace.tracestate} {trace.baggage}"


def _told(context: Context) -> str:
    """Tell the metadata, without the key that the player adds in some revisions."""
    return json.dumps({key: value for key, value in context.meta.items() if key != "example.com/unknown"})


@tool(name="meta")
async def tell_meta(context: Context) -> str:
    """Tell the metadata of the request."""
    return _told(context)


@prompt(name="meta")
async def meta_prompt(context: Context) -> str:
    """Tell the metadata of the request."""
    return _told(context)


@resource("meta://request")
async def meta_resource(context: Context) -> str:
    """Tell the metadata of the request."""
    return _told(context)


class Steps(BaseModel):
    steps: int
    total: int | None = None


class Hurry(ITool[Steps, str]):
    name = "hurry"
    description = "Report more than anybody reads"

    async def execute(self, arguments: Steps, context: Context) -> str:
        for step in range(1, arguments.steps + 1):
            context.report_progress(step, arguments.total)
        return "there"


class Container(containers.DeclarativeContainer):
    """Everything that sends notifications."""

    settings = providers.Object({"server": {"name": "transcripts", "version": "1"}})
    tools = providers.List(
        providers.Object(log_all),
        providers.Object(log_kinds),
        providers.Object(log_in_thread),
        providers.Singleton(Trace),
        providers.Object(tell_meta),
    )
    prompts = providers.List(providers.Object(log_prompt), providers.Object(meta_prompt))
    resources = providers.List(providers.Object(log_resource), providers.Object(meta_resource))


class Quiet(containers.DeclarativeContainer):
    """A server that sends only error messages, and one message per 15 minutes."""

    settings = providers.Object({"server": {"name": "transcripts", "version": "1"}})
    tools = providers.List(providers.Object(log_all), providers.Object(log_kinds), providers.Singleton(Hurry))
