"""`logging/setLevel`: what a client with a handshake wants to hear."""

from axolotl_core.errors import InvalidParams
from axolotl_core.protocol.levels import LEVELS
from axolotl_server.methods.params import LevelParams, read_params
from axolotl_server.request import Request

__all__ = ["set_level"]


async def set_level(request: Request) -> bytes:
    """Remember from which level on the client wants log messages."""
    level = read_params(request.data, LevelParams).level
    if level not in LEVELS:
        raise InvalidParams(f'Invalid params: "level" must be one of {", ".join(LEVELS)}')
    assert request.connection is not None
    request.connection.log_level = level
    return b"{}"
