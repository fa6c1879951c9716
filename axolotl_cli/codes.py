"""How a command ends, as the shell sees it."""

from enum import IntEnum

__all__ = ["ExitCode"]


class ExitCode(IntEnum):
    """What became of a command."""

    DONE = 0
    TOOL_FAILED = 1
    """The tool answered, and its answer is an error."""
    NOT_READY = 1
    """A server says that no calls should come."""
    NOT_CONFIGURED = 2
    """The command line, the settings or the container are wrong."""
    REFUSED = 3
    """The server refused the request itself, as for a tool that is not there, or a prompt or a resource failed."""
    UNREACHABLE = 3
    """No server answered."""
