"""Settings from environment variables and `.env` files: `AXOLOTL_HTTP__PORT` is `http.port`."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from io import StringIO
from json import JSONDecodeError
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from axolotl_core.errors import ConfigurationError
from axolotl_core.names import nearest
from axolotl_server.settings.origins import (
    FlatValues,
    Locate,
    Origin,
    SecretValues,
    Source,
    combine,
    file_name,
    flatten,
)
from axolotl_server.settings.secret_files import UnreadableFile, read_small
from axolotl_server.settings.settings_shape import SETTINGS, Shape

if TYPE_CHECKING:
    from dotenv.parser import Binding

_PREFIX: Final = "AXOLOTL_"
_MAX_BYTES: Final = 1024 * 1024


class EnvFile(SecretValues, frozen=True):
    """The variables of a `.env` file that begin with `AXOLOTL_`, with their lines."""

    path: Path
    variables: Mapping[str, str] = msgspec.field(default_factory=dict)
    lines: Mapping[str, int] = msgspec.field(default_factory=dict)

    def locate(self, variable: str) -> Origin:
        """Find the line of a variable."""
        return Origin(Source.ENV_FILE, f"{file_name(self.path)}:{self.lines[variable]}")


def read_env_file(path: Path) -> EnvFile:
    """Read the variables that begin with `AXOLOTL_`, without expanding their values.

    Raises a ConfigurationError if the file, or a line with such a variable, cannot be read.
    """
    from dotenv.parser import parse_stream

    try:
        text = read_small(path, _MAX_BYTES)
    except UnreadableFile as error:
        raise ConfigurationError(f"Environment file {path}: {error}") from None
    variables: dict[str, str] = {}
    lines: dict[str, int] = {}
    findings = []
    for binding in parse_stream(StringIO(text)):
        if binding.error or binding.value is None:
            # Other programs may read the file too: only our own lines are reported, and their text is not shown.
            if _is_ours(binding.original.string.strip().removeprefix("export ").lstrip(" '\"")):
                findings.append(
                    f"{file_name(path)}:{_line(binding)} cannot be read: write lines such as AXOLOTL_HTTP__PORT=9000, "
                    "and put text with spaces in quotes"
                )
        elif binding.key is not None and _is_ours(binding.key):
            variables[binding.key], lines[binding.key] = binding.value, _line(binding)
    if findings:
        raise ConfigurationError(*findings)
    return EnvFile(path, variables, lines)


def _line(binding: "Binding") -> int:
    """Return the line of a variable; the parser includes the empty lines before it."""
    text = binding.original.string
    blank = text[: len(text) - len(text.lstrip())]
    return binding.original.line + len(blank.splitlines())


_DELIMITER: Final = "__"
_TOOLSETS: Final = "AXOLOTL_TOOLSETS"
"""Names the tool sets to serve. It is not the section of that name."""


def read_variables(variables: Mapping[str, str], where: Callable[[str], Origin], findings: list[str]) -> FlatValues:
    """Read settings from variables; the variable of a single setting wins over one with a whole section as JSON."""
    settings = {name: keys for name in variables if name.upper() != _TOOLSETS and (keys := _setting_of(name))}
    sources = []
    for name, keys in sorted(settings.items(), key=lambda setting: len(setting[1])):
        origin = where(name)
        *above, last = keys
        try:
            value = json.loads(variables[name]) if _is_json(keys, variables[name]) else variables[name]
        except ValueError as error:
            place = f"; the mistake is at character {error.pos + 1}" if isinstance(error, JSONDecodeError) else ""
            findings.append(
                f'{name} cannot be read: write lists and tables as JSON, for example ["a", "b"]{place} ({origin})'
            )
            continue
        sources.append(flatten({last: value}, _always(origin), tuple(above)))
    return combine(sources)


def _always(origin: Origin) -> Locate:
    return lambda keys: origin


def unknown_variables(variables: Iterable[str], others: Iterable[str] = ()) -> Iterator[str]:
    """Find variables with our prefix that nothing reads; `others` are the known ones that are not settings."""
    known = [name.upper() for name in others]
    for name in filter(_is_ours, variables):
        if name.upper() not in known and not _setting_of(name):
            near = _nearest(name.upper(), known)
            yield f"The variable {name} is unknown and ignored" + (f"; did you mean {near}?" if near else "")


def _is_ours(text: str) -> bool:
    """Tell whether the name of a variable, or a line that begins with one, has our prefix."""
    return text.upper().startswith(_PREFIX)


def _setting_of(name: str) -> tuple[str, ...]:
    """Split the name of a variable into keys; there are none if it does not name a setting."""
    section, *keys = name[len(_PREFIX) :].lower().split(_DELIMITER) if _is_ours(name) else [""]
    known = SETTINGS.fields.get(section)
    return (section, *keys) if known is not None and (not keys or known.is_table) else ()


def _is_json(keys: Sequence[str], text: str) -> bool:
    shape = SETTINGS.at(*keys)
    if text == "null":
        return shape.is_nullable
    if shape.secret is not None:
        return shape.items is not None and text.startswith("[")
    # What looks like the name of a tool may be a misspelled setting, which is text.
    may_be_misspelled = keys[-1] not in SETTINGS.at(*keys[:-1]).fields and not text.lstrip().startswith("{")
    return shape.items is not None or (shape.is_table and not may_be_misspelled)


def _nearest(name: str, others: Iterable[str]) -> str | None:
    """Look for a section with a similar name first, because the rest may be the name of a tool."""
    section, delimiter, rest = name.removeprefix(_PREFIX).partition(_DELIMITER)
    if delimiter:
        near = nearest(section, map(str.upper, SETTINGS.fields))
        if near is not None and near != section:
            return f"{_PREFIX}{near}{delimiter}{rest}"
    return nearest(name, [*others, *(f"{_PREFIX}{known}" for known in _names(SETTINGS))])


def _names(table: Shape) -> Iterator[str]:
    """List all variables whose names are fixed."""
    for key, shape in table.fields.items():
        yield key.upper()
        yield from (f"{key.upper()}{_DELIMITER}{name}" for name in _names(shape))
