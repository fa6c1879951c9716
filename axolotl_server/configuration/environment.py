"""Variables as settings: `AXOLOTL_HTTP__PORT` is `http.port`."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from pydantic import BaseModel

from axolotl_core.names import nearest
from axolotl_server.configuration.origins import Origin
from axolotl_server.configuration.said import Locate, Tree, merge, tree_of
from axolotl_server.configuration.shape import fields_of, keys_of, tables_in
from axolotl_server.settings import ServerSettings

if TYPE_CHECKING:
    from pydantic_settings import BaseSettings, EnvSettingsSource

__all__ = ["Where", "read_variables", "unknown_variables"]

_PREFIX: Final = "AXOLOTL_"
_DELIMITER: Final = "__"
_TOOLSETS: Final = "AXOLOTL_TOOLSETS"
"""Names the tool sets to serve, and no section, though there is one of that name."""

Where: TypeAlias = Callable[[str], Origin]
"""Finds the place of a variable."""


def read_variables(variables: Mapping[str, str], where: Where, findings: list[str]) -> Tree:
    """Read what variables say; one that says more about a setting beats one that holds a whole section as JSON."""
    ours = (name for name in variables if _is_ours(name) and name.upper() != _TOOLSETS)
    names = sorted(ours, key=lambda name: name.count(_DELIMITER))
    if not names:
        return {}
    source, trees = _source(), []
    for name in names:
        try:
            trees.append(tree_of(_read_one(source, name, variables[name]), _always(where(name))))
        except ValueError as error:
            findings.append(_unreadable(error, name, where(name)))
    return merge(*trees)


def unknown_variables(variables: Iterable[str], others: Iterable[str] = ()) -> Iterator[str]:
    """Find variables that look like ours and say nothing; `others` names those that are no settings."""
    source, known = _source(), [name.upper() for name in others]
    for name in filter(_is_ours, variables):
        if name.upper() not in known and not _is_read(source, name):
            near = _nearest(name.upper(), known)
            yield f"The variable {name} is unknown and ignored" + (f"; did you mean {near}?" if near else "")


def _source() -> "EnvSettingsSource":
    from pydantic_settings import EnvSettingsSource

    # The reader looks at fields and configuration only, which every model has.
    model = cast("type[BaseSettings]", ServerSettings)
    return EnvSettingsSource(model, env_prefix=_PREFIX, env_nested_delimiter=_DELIMITER)


def _is_ours(name: str) -> bool:
    return name.upper().startswith(_PREFIX)


def _is_read(source: "EnvSettingsSource", name: str) -> bool:
    try:
        return bool(_read_one(source, name, "x"))
    except ValueError:
        return True


def _read_one(source: "EnvSettingsSource", name: str, value: str) -> dict[str, Any]:
    source.env_vars = {name.lower(): value}
    return source()


def _always(origin: Origin) -> Locate:
    return lambda keys: origin


def _unreadable(error: ValueError, name: str, origin: Origin) -> str:
    cause = error.__cause__
    place = f"; there is a mistake at character {cause.pos + 1}" if isinstance(cause, json.JSONDecodeError) else ""
    return f'{name} cannot be read: lists and tables are written as JSON, as ["a", "b"]{place} ({origin})'


def _nearest(name: str, others: Iterable[str]) -> str | None:
    """Look for a section with a similar name first: what follows it may be the name of a tool."""
    section, delimiter, rest = name.removeprefix(_PREFIX).partition(_DELIMITER)
    if delimiter:
        near = nearest(section, (key.upper() for key in ServerSettings.model_fields))
        if near is not None:
            return f"{_PREFIX}{near}{delimiter}{rest}"
    return nearest(name, [*others, *(f"{_PREFIX}{known}" for known in _names(ServerSettings))])


def _names(model: type[BaseModel]) -> Iterator[str]:
    """Name all variables, as far as the names in them are fixed."""
    for key in keys_of(model):
        yield key.upper()
        field = fields_of(model).get(key)
        for table in () if field is None else tables_in(field.annotation):
            yield from (f"{key.upper()}{_DELIMITER}{name}" for name in _names(table))
