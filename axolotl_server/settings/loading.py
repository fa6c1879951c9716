"""Loading of settings from all sources."""

import os
from collections.abc import Iterator, Mapping
from functools import lru_cache, partial
from typing import Any, Final

from pydantic import BaseModel, ValidationError, create_model

from axolotl_core.errors import ConfigurationError
from axolotl_server.settings.environment import read_variables
from axolotl_server.settings.origins import (
    CONTAINER,
    CombinedValues,
    Keys,
    Origin,
    SecretValues,
    Source,
    SourceValues,
    combine,
    dotted,
)
from axolotl_server.settings.secret_files import SecretFile, UnreadableFile, find_secret_files
from axolotl_server.settings.section import Section
from axolotl_server.settings.server import ServerSettings
from axolotl_server.settings.settings_file import FileSettings

_FLAGS: Final[Mapping[Keys, str]] = {
    ("http", "host"): "--host",
    ("http", "port"): "--port",
    ("http", "path"): "--path",
    ("http", "workers"): "--workers",
    ("log_level",): "--log-level",
}
"""The flags of the command line. Code can pass any other setting the same way."""


_SECTIONS: Final[Mapping[str, type[BaseModel]]] = {
    name: one.annotation
    for name, one in ServerSettings.model_fields.items()
    if isinstance(one.annotation, type) and issubclass(one.annotation, BaseModel)
}


class LoadedSettings(SecretValues, frozen=True):
    """The effective settings, each with its origin."""

    settings: ServerSettings
    _combined: CombinedValues

    def origin_of(self, keys: Keys) -> Origin:
        """Find the origin of a setting."""
        return self._combined.origin_of(keys)


def load_settings(
    *,
    flags: Mapping[str, Any] | None = None,
    file: FileSettings | None = None,
    container: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
) -> ServerSettings:
    """Combine all sources and validate the result.

    Raises a ConfigurationError if a value is wrong or a key unknown. It names the setting, its origin and the nearest
    valid key. `environment` replaces the variables of the process.
    """
    return load_with_origins(flags=flags, file=file, container=container, environment=environment).settings


def load_with_origins(
    *,
    flags: Mapping[str, Any] | None = None,
    file: FileSettings | None = None,
    container: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
) -> LoadedSettings:
    """Load settings like `load_settings`, and remember where each one comes from."""
    environment = os.environ if environment is None else environment
    file = file or FileSettings()
    findings: list[str] = []
    sources = [
        SourceValues(container or {}, lambda keys: CONTAINER),
        *file.sources,
        *_variables(file, environment, findings),
        SourceValues(flags or {}, lambda keys: Origin(Source.FLAG, _FLAGS.get(keys, ""))),
    ]
    combined = combine(find_secret_files(_fold_tool_names(source), ServerSettings, findings) for source in sources)
    return _validate(combined, findings)


def _variables(file: FileSettings, environment: Mapping[str, str], findings: list[str]) -> Iterator[SourceValues]:
    """Read variables; those of the environment win over those of the file."""
    if file.env_file is not None:
        yield read_variables(file.env_file.variables, file.env_file.locate, findings)
    yield read_variables(environment, partial(Origin, Source.ENVIRONMENT), findings)


def _fold_tool_names(source: SourceValues) -> SourceValues:
    """Fold the case of tool names: environment variables have none, and all sources must name the same tool."""
    tools = source.values.get("tools")
    if not isinstance(tools, Mapping):
        return source
    folded = {name.casefold(): overrides for name, overrides in tools.items()}
    renamed: dict[Keys, Keys] = {("tools", name.casefold()): ("tools", name) for name in tools}
    return SourceValues({**source.values, "tools": folded}, source.locate, renamed)


def _validate(combined: CombinedValues, findings: list[str]) -> LoadedSettings:
    """Validate everything, even if there are findings already, to report all mistakes at once."""
    unread: dict[Keys, str] = {}
    try:
        values = _read_secrets(combined.values, (), combined, unread)
        settings = _validate_set(values) or _validate_all(values)
    except ValidationError as error:
        from axolotl_server.settings.mistakes import describe

        mistakes = describe(error, combined, unread)
        raise ConfigurationError(*findings, *unread.values(), *mistakes) from None
    if findings or unread:
        raise ConfigurationError(*findings, *unread.values())
    return LoadedSettings(settings, combined)


def _validate_set(values: Mapping[str, Any]) -> ServerSettings | None:
    """Validate only what is set, because each validator takes time to build; return None if something is wrong."""
    unset: dict[str, Any] = {name: of.model_construct() for name, of in _SECTIONS.items() if name not in values}
    try:
        validated = dict(_model_of(*values).model_validate(values)) if values else {}
        return ServerSettings.model_construct(**unset, **validated).check_sections()
    except ValueError:
        return None


@lru_cache(maxsize=4)
def _model_of(*names: str) -> type[BaseModel]:
    """Make a model with some of the settings. It knows no others, so an unknown name is an error here too."""
    known = {name: ServerSettings.model_fields[name] for name in names if name in ServerSettings.model_fields}
    fields: dict[str, Any] = {name: (field.annotation, field) for name, field in known.items()}
    return create_model("ServerSettings", __base__=Section, **fields)


def _validate_all(values: Mapping[str, Any]) -> ServerSettings:
    """Validate all sections: pydantic lists every error, with its place."""
    return ServerSettings.model_validate({**{name: {} for name in _SECTIONS}, **values})


def _read_secrets(value: Any, keys: Keys, combined: CombinedValues, unread: dict[Keys, str]) -> Any:
    """Copy values, with the content of each secret file in its place."""
    match value:
        case dict():
            return {key: _read_secrets(inner, (*keys, key), combined, unread) for key, inner in value.items()}
        case list():
            return [_read_secrets(inner, (*keys, index), combined, unread) for index, inner in enumerate(value)]
        case SecretFile():
            try:
                return value.read()
            except UnreadableFile as error:
                unread[keys] = f"Setting {dotted(value.keys)}: {error} ({combined.origin_of(keys)})"
    return value
