"""The measured frameworks, with the commands that start their servers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Literal

from benchmarks.errors import NotInstalled

Transport = Literal["stateless", "session", "stdio"]
Tools = Literal["add", "thousand", "ten_thousand", "slow", "busy", "sized", "stream"]
"""The tools of a server: `add` alone, `add` behind others, tools that block, tools that compute, tools
that take texts, and streams (only the floor)."""


@dataclass(frozen=True)
class Launch:
    """The kind of server to start."""

    transport: Transport
    port: int = 0
    tools: Tools = "add"
    tuned: bool = False
    """Whether a peer runs with the fastest event loop, parser and settings, instead of its defaults."""


@dataclass(frozen=True)
class Contender:
    """A framework: the package it needs and the command that starts its server."""

    name: str
    module: str
    distribution: str
    command: Callable[[Launch], Sequence[str]]

    def require(self) -> None:
        """Raise NotInstalled if the package is missing."""
        if find_spec(self.module) is None:
            raise NotInstalled("not installed")

    def version(self) -> str | None:
        """Return the installed version, or None."""
        try:
            return version(self.distribution)
        except PackageNotFoundError:
            return None


def _floor(launch: Launch) -> list[str]:
    return ["-m", "benchmarks.servers.floor", str(launch.port), launch.tools]


def _axolotl(launch: Launch) -> list[str]:
    serve = ["-m", "axolotl_cli", "serve", f"benchmarks.servers.axolotl_{launch.tools}:Container", "--transport"]
    return [*serve, "stdio"] if launch.transport == "stdio" else [*serve, "http", "--port", str(launch.port)]


def _peer(module: str) -> Callable[[Launch], list[str]]:
    def command(launch: Launch) -> list[str]:
        setting = "tuned" if launch.tuned else "plain"
        return ["-m", f"benchmarks.servers.{module}", launch.transport, str(launch.port), launch.tools, setting]

    return command


FLOOR = Contender("floor", "uvicorn", "uvicorn", _floor)
AXOLOTL = Contender("axolotl", "axolotl_cli", "axolotl-mcp", _axolotl)
MCP = Contender("mcp", "mcp", "mcp", _peer("mcp_peer"))
FASTMCP = Contender("fastmcp", "fastmcp", "fastmcp", _peer("fastmcp_peer"))
CONTENDERS = (FLOOR, AXOLOTL, MCP, FASTMCP)
