"""Where a value came from, in words for the one who has to change it."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

__all__ = ["CONTAINER", "DEFAULT", "TOOL", "Layer", "Origin", "file_name"]


class Layer(StrEnum):
    """Who can say something about a setting; each beats all below it."""

    FLAG = "flag"
    ENVIRONMENT = "environment"
    ENV_FILE = "env_file"
    FILE = "file"
    CONTAINER = "container"
    TOOL = "tool"
    DEFAULT = "default"


_WORDS: Final = {
    Layer.FLAG: "flag {}",
    Layer.ENVIRONMENT: "environment {}",
    Layer.CONTAINER: "container{}",
    Layer.TOOL: "tool attribute{}",
    Layer.DEFAULT: "default{}",
}


@dataclass(frozen=True, slots=True)
class Origin:
    """A layer, and the place in it: the flag, the variable, or the file with its line."""

    layer: Layer
    place: str = ""

    def __str__(self) -> str:
        if self.layer is Layer.FLAG and not self.place:
            return "argument"  # of code that stands where the command line would
        return _WORDS.get(self.layer, "{}").format(self.place).strip()


CONTAINER: Final = Origin(Layer.CONTAINER)
TOOL: Final = Origin(Layer.TOOL)
DEFAULT: Final = Origin(Layer.DEFAULT)


def file_name(path: Path) -> str:
    """Write the name of a file as someone in the current directory would."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)
