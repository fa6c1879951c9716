"""The measured frameworks, with the commands that start their servers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Literal

from benchmarks.environments import interpreter

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
    """A framework: the packages of its environment and the arguments that start its server."""

    name: str
    distribution: str
    packages: tuple[str, ...]
    arguments: Callable[[Launch], Sequence[str]]

    @property
    def python(self) -> str:
        """Return the interpreter of its environment. Raises NotInstalled if there is none."""
        return interpreter(self.name, *self.packages)

    def command(self, launch: Launch) -> list[str]:
        """Return the command that starts the server. Raises NotInstalled if packages are missing."""
        return [self.python, *self.arguments(launch)]

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


_STACK = ("uvloop", "httptools")
FLOOR = Contender("floor", "uvicorn", ("uvicorn", "msgspec", "pydantic", *_STACK), _floor)
AXOLOTL = Contender("axolotl", "axolotl-mcp", ("--requirement", "pyproject.toml"), _axolotl)
MCP = Contender("mcp", "mcp", ("mcp", "uvicorn", *_STACK), _peer("mcp_peer"))
FASTMCP = Contender("fastmcp", "fastmcp", ("fastmcp", "uvicorn", *_STACK), _peer("fastmcp_peer"))
CONTENDERS = (FLOOR, AXOLOTL, MCP, FASTMCP)
