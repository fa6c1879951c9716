"""Known MCP clients: the paths of their configuration files, and the format of an entry in them."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from axolotl_cli.options import ClientName, Scope
from axolotl_core.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class ConfigPaths:
    """The paths of configuration files, which depend on the machine, the user and the project."""

    platform: str
    home: Path
    variables: Mapping[str, str]
    project: Path

    @classmethod
    def of_this_machine(cls) -> "ConfigPaths":
        return cls(sys.platform, Path.home(), os.environ, Path.cwd())

    @property
    def applications(self) -> Path:
        """The directory in which applications keep the settings of a user."""
        if self.platform == "darwin":
            return self.home / "Library" / "Application Support"
        if self.platform == "win32":
            return self._variable("APPDATA") or self.home / "AppData" / "Roaming"
        return self._variable("XDG_CONFIG_HOME") or self.home / ".config"

    def find(self, name: ClientName, scope: Scope) -> Path | None:
        """Return the path of a client's file, or None if it has no file for the scope."""
        if scope is Scope.PROJECT:
            paths = {
                ClientName.CLAUDE_CODE: self.project / ".mcp.json",
                ClientName.CURSOR: self.project / ".cursor" / "mcp.json",
                ClientName.VSCODE: self.project / ".vscode" / "mcp.json",
                ClientName.GEMINI_CLI: self.project / ".gemini" / "settings.json",
            }
        else:
            paths = {
                ClientName.CLAUDE_CODE: (self._variable("CLAUDE_CONFIG_DIR") or self.home) / ".claude.json",
                ClientName.CLAUDE_DESKTOP: self.applications / "Claude" / "claude_desktop_config.json",
                ClientName.CURSOR: self.home / ".cursor" / "mcp.json",
                ClientName.VSCODE: self.applications / "Code" / "User" / "mcp.json",
                ClientName.GEMINI_CLI: self.home / ".gemini" / "settings.json",
            }
        return paths.get(name)

    def _variable(self, name: str) -> Path | None:
        value = self.variables.get(name)
        return Path(value) if value else None


@dataclass(frozen=True, slots=True)
class KnownClient:
    """How one client describes servers in its configuration file."""

    title: str
    section: str = "mcpServers"
    """The key of the object with the servers."""
    reference: str | None = None
    """How an entry refers to a value that is not in the file; None if it cannot."""
    asks: bool = False
    """Whether it asks its user for such values, instead of reading its environment."""
    names_transport: tuple[str, ...] = ("http",)
    """The transports whose entries have a `type`."""
    takes_urls: bool = True
    """Whether its file may have servers at a URL."""
    next_step: str = ""
    """A hint for the user after the file was changed."""
    keys: Mapping[str, str] = field(default_factory=dict)
    """Keys and types of an entry that this client calls differently."""

    def entry(self, transport: str, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Return the entry of one server, without empty fields."""
        if transport == "http" and not self.takes_urls:
            raise ConfigurationError(
                f"The file of {self.title} cannot have servers at a URL: leave out --transport and --url, or add the "
                "URL as a connector in its settings"
            )
        kind = {"type": self.keys.get(transport, transport)} if transport in self.names_transport else {}
        used = {self.keys.get(key, key): value for key, value in fields.items() if value}
        return {**kind, **used}

    def refer(self, variable: str, server: str) -> str:
        """Return a reference to the value of a variable, which is not in the file."""
        if self.reference is None:
            raise ConfigurationError(
                f"{self.title} cannot refer to environment variables: use --env {variable}=VALUE, or let the server "
                "read the value from a file, with a setting that ends in _FILE or with --env-file"
            )
        return self.reference.format(name=variable, id=self.input_id(variable, server))

    def input_id(self, variable: str, server: str) -> str:
        """Return the id of a value that the client asks its user for."""
        return f"{server}-{variable}".lower().replace("_", "-")


_BOTH: Final = ("stdio", "http")

CLIENTS: Final[Mapping[ClientName, KnownClient]] = {
    ClientName.CLAUDE_CODE: KnownClient(
        "Claude Code",
        reference="${{{name}}}",
        names_transport=_BOTH,
        next_step="Running sessions do not see it: start a new one, and check with /mcp.",
    ),
    ClientName.CLAUDE_DESKTOP: KnownClient(
        "Claude Desktop", takes_urls=False, next_step="Restart Claude Desktop to use it."
    ),
    ClientName.CURSOR: KnownClient(
        "Cursor",
        reference="${{env:{name}}}",
        names_transport=("stdio",),
        next_step="Cursor shows it in its settings under MCP.",
    ),
    ClientName.VSCODE: KnownClient(
        "VS Code",
        section="servers",
        reference="${{input:{id}}}",
        asks=True,
        names_transport=_BOTH,
        next_step="VS Code starts it when needed; the command MCP: List Servers shows it.",
    ),
    ClientName.GEMINI_CLI: KnownClient(
        "Gemini CLI",
        reference="${{{name}}}",
        names_transport=(),
        keys={"url": "httpUrl"},
        next_step="Start Gemini CLI again, and check with /mcp.",
    ),
    ClientName.JSON: KnownClient("a client", reference="${{{name}}}"),
}
