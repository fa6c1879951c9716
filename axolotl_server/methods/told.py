"""Failures that no result can tell, as those of prompts and resources: an error of the protocol does."""

from axolotl_core.errors import InternalError, InvalidArguments, InvalidParams, ToolError
from axolotl_server.invocation import Invocation
from axolotl_server.request import Request

__all__ = ["ErrorTelling"]


class ErrorTelling(Invocation):
    """Answers failures with JSON-RPC errors."""

    def tell(self, error: ToolError, request: Request) -> bytes:
        """Raise what the caller may read."""
        if isinstance(error, InvalidArguments):
            raise InvalidParams(error.message) from None
        raise InternalError(error.message, data=error.meta) from None
