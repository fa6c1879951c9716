"""What the servers of the peers have in common: their command line, their tools and the HTTP server below them."""

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.servers.functions import MANY, Function, add, typed_functions

if TYPE_CHECKING:
    from starlette.types import ASGIApp


@dataclass(frozen=True)
class Request:
    """Hold what the command line asks for."""

    transport: str
    port: int
    functions: list[Function]


def read_request() -> Request:
    """Read `TRANSPORT PORT one|many` from the command line; `add` comes last among many."""
    transport, port, tools = sys.argv[1:4]
    others = typed_functions(MANY - 1) if tools == "many" else []
    return Request(transport, int(port), [*others, add])


def serve(app: "ASGIApp", port: int) -> None:
    """Serve with the same loop and parser as the floor, which the peers' own `run` do not choose."""
    import uvicorn  # only here, so that a server on pipes does not pay for it

    uvicorn.run(app, host="127.0.0.1", port=port, loop="uvloop", http="httptools", log_level="error", access_log=False)
