"""What a server says of itself."""

from importlib.metadata import PackageNotFoundError, version
from typing import Literal

from pydantic import Field

from axolotl_server.settings_section import Section

__all__ = ["ServerIcon", "ServerIdentity"]


def _own_version() -> str:
    try:
        return version("axolotl-mcp")
    except PackageNotFoundError:
        return "0"


class ServerIcon(Section):
    """A picture that clients may show beside the server's name."""

    src: str = Field(pattern=r"^(https:|data:)")
    """The picture, as an `https:` or `data:` URI."""
    mime_type: str | None = None
    """Its type, as `image/png`."""
    sizes: tuple[str, ...] | None = None
    """The sizes it is made for, as `48x48`."""
    theme: Literal["light", "dark"] | None = None
    """On which background it is shown."""


class ServerIdentity(Section):
    """What the server says of itself; revisions that have no place for something are not told it."""

    name: str = "axolotl"
    """The name that clients see."""
    version: str = Field(default_factory=_own_version)
    """The version that clients see."""
    title: str | None = None
    """The name that people see."""
    description: str | None = None
    """What the server is for."""
    website_url: str | None = None
    """Where to read more."""
    icons: tuple[ServerIcon, ...] = ()
    """Pictures that clients may show."""
    instructions: str | None = None
    """How a model should use the server as a whole."""
