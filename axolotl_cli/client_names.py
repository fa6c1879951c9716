"""Clients by name, and for whom they have a server."""

from enum import StrEnum

__all__ = ["ClientName", "Scope"]


class ClientName(StrEnum):
    """Whose configuration is wanted."""

    CLAUDE_CODE = "claude-code"
    CLAUDE_DESKTOP = "claude-desktop"
    CURSOR = "cursor"
    VSCODE = "vscode"
    JSON = "json"


class Scope(StrEnum):
    """For whom a client has a server: for its user everywhere, or for everybody who works on a project."""

    USER = "user"
    PROJECT = "project"
