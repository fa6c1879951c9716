"""Servers of other frameworks with tools that report, ask and fail: `python -m … official|fastmcp`."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pydantic import BaseModel


class Word(BaseModel):
    """A form with one field."""

    word: str


def _official() -> Any:
    from mcp.server import MCPServer
    from mcp.server.mcpserver import Context

    server = MCPServer("foreign", instructions="Be brief", log_level="ERROR")

    @server.tool()
    async def climb(steps: int, context: Context[Any, Any]) -> str:
        """Report every step."""
        for step in range(1, steps + 1):
            await context.report_progress(step, steps, f"step {step}")
        return "there"

    @server.tool()
    async def insist(context: Context[Any, Any]) -> str:
        """Ask for a word."""
        answer = await context.elicit("A word?", schema=Word)
        return answer.data.word if answer.action == "accept" else answer.action

    return server


def _fastmcp() -> Any:
    from fastmcp import Context, FastMCP

    server = FastMCP("foreign", instructions="Be brief")

    @server.tool
    async def climb(steps: int, context: Context) -> str:
        """Report every step."""
        for step in range(1, steps + 1):
            await context.report_progress(step, steps, f"step {step}")
        return "there"

    @server.tool
    async def insist(context: Context) -> str:
        """Ask for a word."""
        answer = await context.elicit("A word?", response_type=Word)
        return answer.data.word if answer.action == "accept" else answer.action

    return server


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def crash() -> str:
    """Fail."""
    raise ValueError("broken")


def greeting(name: str) -> str:
    """Greet somebody."""
    return f"Hello, {name}"


def config() -> str:
    """Read the configuration."""
    return "debug"


def note(name: str) -> str:
    """Read a note."""
    return f"note {name}"


def main() -> None:
    """Serve on a free port and print it."""
    import uvicorn

    kind = sys.argv[1]
    server = _official() if kind == "official" else _fastmcp()
    server.tool()(add)
    server.tool()(crash)
    server.prompt()(greeting)
    server.resource("config://app")(config)
    server.resource("notes://{name}")(note)
    app = server.streamable_http_app() if kind == "official" else server.http_app()
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[listener])


@contextmanager
def foreign_server(kind: str) -> Iterator[str]:
    """Run one of the servers until the block ends, and yield the URL of its endpoint."""
    command = [sys.executable, "-m", __name__, kind]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            yield f"http://127.0.0.1:{int(process.stdout.readline())}/mcp"
        finally:
            process.kill()


if __name__ == "__main__":
    main()
