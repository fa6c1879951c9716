"""MCP Apps: a tool may name the page that shows its results."""

from typing import Final, Literal

import msgspec

__all__ = ["APP_EXTENSION", "APP_MIME_TYPE", "APP_SCHEME", "AppLink", "app_link"]

APP_EXTENSION: Final = "io.modelcontextprotocol/ui"
APP_MIME_TYPE: Final = "text/html;profile=mcp-app"
APP_SCHEME: Final = "ui://"


class AppLink(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """The `ui://` resource that belongs to a tool, and who may call the tool: the model, the page, or both."""

    resource_uri: str
    visibility: tuple[Literal["model", "app"], ...] | None = None


def app_link(said: str | AppLink | None) -> AppLink | None:
    """Read what a tool says of its page."""
    return AppLink(said) if isinstance(said, str) else said
