"""What can be set of the console."""

from pydantic import Field

from axolotl_server.settings_section import Section

__all__ = ["ConsoleSettings"]


class ConsoleSettings(Section):
    """The page at `/console`, which `axolotl dev` has and a server in production has not."""

    enabled: bool = False
    """Whether the page is served, to the machine itself and to nobody else."""
    recent_calls: int = Field(500, ge=1, le=10_000)
    """How many calls the server remembers for a page that is opened later."""
    show_arguments: bool = False
    """Whether arguments are shown, without what is sensitive."""
