"""The clients that a server can be put into: where each keeps its servers, and how it writes them."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from axolotl_cli.options import ClientName, Scope
from axolotl_core.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class Places:
    """The machine as far as it decides where files are."""

    platform: str
    home: Path
    variables: Mapping[str, str]
    directory: Path
    """Where the project is."""

    @classmethod
    def here(cls) -> "Places":
        """Look at this machine."""
        return cls(sys.platform, Path.home(), os.environ, Path.cwd())

    @property
    def applications(self) -> Path:
        """Where applications keep what belongs to a user."""
        if self.platform == "darwin":
            return self.home / "Library" / "Application Support"
        if self.platform == "win32":
            return self._named("APPDATA") or self.home / "AppData" / "Roaming"
        return self._named("XDG_CONFIG_HOME") or self.home / ".config"

    def file(self, name: ClientName, scope: Scope) -> Path | None:
        """Say where a client looks; None where it has no such place."""
        return (self._of_project if scope is Scope.PROJECT else self._of_user).get(name)

    @property
    def _of_user(self) -> dict[ClientName, Path]:
        return {
            ClientName.CLAUDE_CODE: (self._named("CLAUDE_CONFIG_DIR") or self.home) / ".claude.json",
            ClientName.CLAUDE_DESKTOP: self.applications / "Claude" / "claude_desktop_config.json",
            ClientName.CURSOR: self.home / ".cursor" / "mcp.json",
            ClientName.VSCODE: self.applications / "Code" / "User" / "mcp.json",
        }

    @property
    def _of_project(self) -> dict[ClientName, Path]:
        return {
            ClientName.CLAUDE_CODE: self.directory / ".mcp.json",
            ClientName.CURSOR: self.directory / ".cursor" / "mcp.json",
            ClientName.VSCODE: self.directory / ".vscode" / "mcp.json",
        }

    def _named(self, variable: str) -> Path | None:
        value = self.variables.get(variable)
        return Path(value) if value else None


@dataclass(frozen=True, slots=True)
class Client:
    """How one client writes down its servers."""

    title: str
    section: str = "mcpServers"
    """The key of the object that has them by name."""
    reference: str | None = None
    """How it refers to a value that stands elsewhere; None where it cannot."""
    asks: bool = False
    """Whether it asks its user for such values, instead of looking into its environment."""
    names_transport: tuple[str, ...] = ("http",)
    """The transports that an entry has to name."""
    takes_urls: bool = True
    """Whether its file may name servers that run elsewhere."""
    afterwards: str = ""
    """What its user has to do."""

    def entry(self, transport: str, facts: Mapping[str, Any]) -> dict[str, Any]:
        """Write down one server; what it has not is left out.

        Raises:
            ConfigurationError: if the client's file has no place for such a server.
        """
        if transport == "http" and not self.takes_urls:
            raise ConfigurationError(
                f"The file of {self.title} names servers that it starts itself: leave --transport and --url out, or "
                "add the URL in its settings, as a connector"
            )
        kind = {"type": transport} if transport in self.names_transport else {}
        return {**kind, **{key: value for key, value in facts.items() if value}}

    def refer(self, variable: str, server: str) -> str:
        """Refer to a value that must not stand in the file.

        Raises:
            ConfigurationError: if the client cannot do that.
        """
        if self.reference is None:
            raise ConfigurationError(
                f"{self.title} takes no values from elsewhere: say --env {variable}=VALUE, or have the server read a "
                "file, by a setting that ends in _FILE or by --env-file"
            )
        return self.reference.format(name=variable, id=self.input_id(variable, server))

    def input_id(self, variable: str, server: str) -> str:
        """Name what the client asks its user for."""
        return f"{server}-{variable}".lower().replace("_", "-")


_BOTH: Final = ("stdio", "http")

CLIENTS: Final[Mapping[ClientName, Client]] = {
    ClientName.CLAUDE_CODE: Client(
        "Claude Code",
        reference="${{{name}}}",
        names_transport=_BOTH,
        afterwards="Sessions that run already do not see it: start a new one, and look with /mcp.",
    ),
    ClientName.CLAUDE_DESKTOP: Client(
        "Claude Desktop", takes_urls=False, afterwards="Quit Claude Desktop and start it again to use it."
    ),
    ClientName.CURSOR: Client(
        "Cursor",
        reference="${{env:{name}}}",
        names_transport=("stdio",),
        afterwards="Cursor shows it in its settings, under MCP.",
    ),
    ClientName.VSCODE: Client(
        "VS Code",
        section="servers",
        reference="${{input:{id}}}",
        asks=True,
        names_transport=_BOTH,
        afterwards="VS Code starts it when it is needed; its command MCP: List Servers shows it.",
    ),
    ClientName.JSON: Client("a client", reference="${{{name}}}"),
}
