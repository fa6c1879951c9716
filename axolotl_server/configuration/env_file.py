"""`.env` files: variables that the environment does not have."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Final

from axolotl_core.errors import ConfigurationError
from axolotl_server.configuration.bounded import UnreadableFile, read_small
from axolotl_server.configuration.origins import Layer, Origin, file_name

if TYPE_CHECKING:
    from dotenv.parser import Binding

__all__ = ["EnvFile", "read_env_file"]

_PREFIX: Final = "AXOLOTL_"
_MAX_BYTES: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class EnvFile:
    """The variables of a file that are ours, with their lines."""

    path: Path
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    lines: Mapping[str, int] = field(default_factory=dict)

    def locate(self, variable: str) -> Origin:
        """Find the line of a variable."""
        return Origin(Layer.ENV_FILE, f"{file_name(self.path)}:{self.lines[variable]}")


def read_env_file(path: Path) -> EnvFile:
    """Read the variables that begin with `AXOLOTL_`; nothing in their values is expanded.

    Raises:
        ConfigurationError: if there is no such file, or one of our lines cannot be read.
    """
    from dotenv.parser import parse_stream

    try:
        text = read_small(path, _MAX_BYTES)
    except UnreadableFile as error:
        raise ConfigurationError(f"The file of variables {path}: {error}") from None
    variables: dict[str, str] = {}
    lines: dict[str, int] = {}
    findings = []
    for binding in parse_stream(StringIO(text)):
        if binding.error or binding.value is None:
            findings += _unreadable(path, binding)
        elif binding.key is not None and _is_ours(binding.key):
            variables[binding.key], lines[binding.key] = binding.value, _line(binding)
    if findings:
        raise ConfigurationError(*findings)
    return EnvFile(path, variables, lines)


def _is_ours(text: str) -> bool:
    return text.upper().startswith(_PREFIX)


def _unreadable(path: Path, binding: "Binding") -> list[str]:
    """Complain of our own lines only, and without their text; the file may serve other programs that know more."""
    written = binding.original.string.strip().removeprefix("export ").lstrip(" '\"")
    if not _is_ours(written):
        return []
    place = f"{file_name(path)}:{_line(binding)}"
    return [f"{place} cannot be read: write it as in AXOLOTL_HTTP__PORT=9000, and a text with spaces in quotes"]


def _line(binding: "Binding") -> int:
    """The parser counts the empty lines before a variable to it."""
    text = binding.original.string
    blank = text[: len(text) - len(text.lstrip())]
    return binding.original.line + len(blank.splitlines())
