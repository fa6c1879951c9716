"""Extensions and apps."""

from collections.abc import Mapping
from typing import Any

from dependency_injector import containers, providers

from axolotl_core import Context, ITool, NoArguments, ResourceNotFound, ToolError, resource, tool
from axolotl_core.content import AppLink, TextResource
from axolotl_server.extension import Extension

RECEIPTS = "com.example/receipts"
APPS = "io.modelcontextprotocol/ui"


class Receipts(Extension):
    identifier = RECEIPTS
    settings = {"currency": "EUR"}  # noqa: RUF012

    @property
    def methods(self) -> Mapping[str, Any]:
        return {
            "receipts/print": self.print,
            "receipts/nothing": self.nothing,
            "receipts/fail": self.fail,
            "receipts/own": self.own,
        }

    async def print(self, params: Mapping[str, Any], context: Context) -> Mapping[str, Any]:
        context.report_progress(1, 2)
        known = context.client_extension(RECEIPTS)
        return {"number": params.get("number"), "settings": known}

    async def nothing(self, params: Mapping[str, Any], context: Context) -> Mapping[str, Any]:
        return {}

    async def fail(self, params: Mapping[str, Any], context: Context) -> Mapping[str, Any]:
        if params.get("how") == "missing":
            raise ResourceNotFound("receipts://5")
        if params.get("how") == "politely":
            raise ToolError("Out of paper", meta={"example.com/sheets": 0})
        raise RuntimeError("the password is swordfish")

    async def own(self, params: Mapping[str, Any], context: Context) -> Mapping[str, Any]:
        return {"resultType": "receipt", "_meta": {"example.com/n": 1}}


class Chart(ITool[NoArguments, str]):
    name = "chart"
    description = "Draw a chart"
    app = "ui://chart"
    meta = {"example.com/cost": 1}  # noqa: RUF012

    async def execute(self, arguments: NoArguments, context: Context) -> str:
        settings = context.client_extension(APPS)
        return "no apps" if settings is None else f"apps with {settings.get('mimeTypes')}"


class Redraw(ITool[NoArguments, str]):
    name = "redraw"
    description = "Draw it again, for the page only"
    app = AppLink("ui://chart", ("app",))

    async def execute(self, arguments: NoArguments, context: Context) -> str:
        return "drawn"


@tool
async def plain() -> str:
    """Have no page."""
    return "plain"


@resource("ui://chart")
async def chart_page(context: Context) -> TextResource:
    """Show the chart."""
    meta = {"ui": {"prefersBorder": True, "csp": {"connectDomains": ["https://example.com"]}}}
    return TextResource(context.uri, "<!DOCTYPE html><title>Chart</title>", "text/html;profile=mcp-app", meta)


class Container(containers.DeclarativeContainer):
    """A server with its own extensions."""

    settings = providers.Object({"server": {"name": "transcripts", "version": "1"}})
    tools = providers.List(providers.Object(plain))
    extensions = providers.List(
        providers.Singleton(Receipts), providers.Singleton(Extension, "com.example/notes", {"a": {"b": [1]}})
    )


class Apps(containers.DeclarativeContainer):
    """Tools with pages."""

    settings = providers.Object({"server": {"name": "transcripts", "version": "1"}})
    tools = providers.List(providers.Singleton(Chart), providers.Singleton(Redraw), providers.Object(plain))
    resources = providers.List(providers.Object(chart_page))
