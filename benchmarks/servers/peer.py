"""What the servers of the peers have in common: their command line, their tools and the HTTP server below them."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from benchmarks.servers.functions import MANY, add, typed_functions
from benchmarks.servers.slow_functions import DEADLINE_SECONDS, SLOW_FUNCTIONS

if TYPE_CHECKING:
    from starlette.types import ASGIApp


@dataclass(frozen=True)
class Request:
    """Hold what the command line asks for."""

    transport: str
    port: int
    functions: Sequence[Callable[..., Any]]
    tuned: bool
    deadline_seconds: float | None = None
    """The deadline of the tools, for those who have one."""

    @property
    def log_level(self) -> Literal["ERROR", "INFO"]:
        """Return the level that the setting asks for; INFO is the peers' default."""
        return "ERROR" if self.tuned or self.transport == "stdio" else "INFO"


def read_request() -> Request:
    """Read `TRANSPORT PORT one|many|slow plain|tuned` from the command line; `add` comes last among many.

    A plain peer runs as its own installation does: Axolotl's event loop and HTTP parser are not there.
    """
    transport, port, tools, setting = sys.argv[1:5]
    if setting == "plain":
        sys.modules.update(dict.fromkeys(("uvloop", "httptools")))  # type: ignore[arg-type]
    if tools == "slow":
        return Request(transport, int(port), SLOW_FUNCTIONS, setting == "tuned", DEADLINE_SECONDS)
    others = typed_functions(MANY - 1) if tools == "many" else []
    return Request(transport, int(port), [*others, add], setting == "tuned")


def serve(app: "ASGIApp", port: int) -> None:
    """Serve with the same loop and parser as the floor, which the peers' own `run` do not choose."""
    import uvicorn  # only here, so that a server on pipes does not pay for it

    uvicorn.run(app, host="127.0.0.1", port=port, loop="uvloop", http="httptools", log_level="error", access_log=False)
