"""The command line, tools and HTTP server that the peers share."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from benchmarks.servers.functions import MANY, add, busy_add, sized, typed_functions
from benchmarks.servers.slow_functions import DEADLINE_SECONDS, SLOW_FUNCTIONS

if TYPE_CHECKING:
    from starlette.types import ASGIApp


@dataclass(frozen=True)
class Request:
    """The parsed command line."""

    transport: str
    port: int
    functions: Sequence[Callable[..., Any]]
    tuned: bool
    deadline_seconds: float | None = None
    """The timeout of the tools, for peers that support it."""

    @property
    def log_level(self) -> Literal["ERROR", "INFO"]:
        """Return the log level; INFO is the peers' default."""
        return "ERROR" if self.tuned or self.transport == "stdio" else "INFO"


def read_request() -> Request:
    """Parse `TRANSPORT PORT TOOLS plain|tuned`; `add` is the last of many tools.

    A plain peer runs without uvloop and httptools, which only Axolotl installs.
    """
    transport, port, tools, setting = sys.argv[1:5]
    if setting == "plain":
        sys.modules.update(dict.fromkeys(("uvloop", "httptools")))  # type: ignore[arg-type]
    if tools == "slow":
        return Request(transport, int(port), SLOW_FUNCTIONS, setting == "tuned", DEADLINE_SECONDS)
    functions: dict[str, Sequence[Callable[..., Any]]] = {"busy": [busy_add], "sized": [sized]}
    others = typed_functions(MANY[tools] - 1) if tools in MANY else []
    return Request(transport, int(port), functions.get(tools, [*others, add]), setting == "tuned")


def serve(app: "ASGIApp", port: int) -> None:
    """Serve with the same event loop and parser as the floor, which the peers' own `run` does not use."""
    import uvicorn  # imported here so that stdio servers do not pay for it

    uvicorn.run(app, host="127.0.0.1", port=port, loop="uvloop", http="httptools", log_level="error", access_log=False)
