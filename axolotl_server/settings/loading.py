"""Loading of settings from all sources."""

import os
from collections.abc import Mapping
from functools import partial
from typing import Any, Final, TypeVar

import msgspec
from pydantic import ValidationError, create_model

from axolotl_core.errors import ConfigurationError
from axolotl_server.settings.environment import read_variables
from axolotl_server.settings.origins import (
    CONTAINER,
    DEFAULT,
    FlatValues,
    Keys,
    Origin,
    SecretValues,
    Source,
    SourcedValue,
    combine,
    dotted,
    flatten,
    inside,
    nest,
    origin_in,
)
from axolotl_server.settings.secret_files import SecretFile, UnreadableFile, find_secret_files
from axolotl_server.settings.section import Section
from axolotl_server.settings.server import ServerSettings
from axolotl_server.settings.settings_file import FileSettings
from axolotl_server.settings.settings_shape import SETTINGS, Shape, shape_of

SectionT = TypeVar("SectionT", bound=Section)

_FLAGS: Final[Mapping[Keys, str]] = {
    ("http", "host"): "--host",
    ("http", "port"): "--port",
    ("http", "path"): "--path",
    ("http", "workers"): "--workers",
    ("log_level",): "--log-level",
}
"""The flags of the command line. Code can pass any other setting the same way."""


class LoadedSettings(SecretValues, frozen=True):
    """The effective settings, each with its origin."""

    settings: ServerSettings
    _values: FlatValues

    def origin_of(self, keys: Keys) -> Origin:
        """Find the origin of a setting; for a table, in the source of its first value."""
        found = origin_in(self._values, keys)
        if found is not None:
            return found
        first = next((self._values[one] for one in inside(self._values, keys)), None)
        return DEFAULT if first is None else first.locate(first.written[: len(keys)])

    def with_extensions(self, models: Mapping[str, type[Section]]) -> "LoadedSettings":
        """Validate the sections of extensions, whose models are known only now, like all others."""
        if not models and not self.settings.extensions:
            return self
        fields: Any = {name: (model, ...) for name, model in models.items()}
        tables: Any = {"extensions": (create_model("Extensions", __base__=Section, **fields), ...)}
        model = create_model("SettingsOfExtensions", __base__=Section, **tables)
        shape, findings = shape_of(model), list[str]()
        written = {keys: self._values[keys] for keys in inside(self._values, ("extensions",))}
        absent = flatten({"extensions": {name: {} for name in models}}, lambda keys: DEFAULT)
        values = combine([absent, find_secret_files(written, shape, findings)])
        extensions = getattr(_validate(values, findings, model, shape), "extensions")  # noqa: B009 - made just now
        known = {name: getattr(extensions, name) for name in models}
        others = {keys: value for keys, value in self._values.items() if keys not in written}
        return LoadedSettings(self.settings.model_copy(update={"extensions": known}), {**others, **values})


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
    sources = [flatten(container or {}, lambda keys: CONTAINER), *file.sources]
    if file.env_file is not None:
        sources.append(read_variables(file.env_file.variables, file.env_file.locate, findings))
    sources.append(read_variables(environment, partial(Origin, Source.ENVIRONMENT), findings))
    sources.append(flatten(flags or {}, lambda keys: Origin(Source.FLAG, _FLAGS.get(keys, ""))))
    folded = ({_fold_tool_name(keys): sourced for keys, sourced in source.items()} for source in sources)
    combined = combine(find_secret_files(source, SETTINGS, findings) for source in folded)
    return LoadedSettings(_validate(combined, findings, ServerSettings, SETTINGS), combined)


def _fold_tool_name(keys: Keys) -> Keys:
    """Fold the case of a tool name: environment variables have none, and all sources must name the same tool."""
    return (keys[0], str(keys[1]).casefold(), *keys[2:]) if keys[0] == "tools" and len(keys) > 1 else keys


def _validate(combined: FlatValues, findings: list[str], model: type[SectionT], shape: Shape) -> SectionT:
    """Validate everything, even if there are findings already, to report all mistakes at once."""
    unread: dict[Keys, str] = {}
    values = nest({keys: _read_secrets(keys, sourced, unread) for keys, sourced in combined.items()})
    found = [*findings, *unread.values()]
    try:
        settings = model.model_validate(values)
        if not found:
            return settings
    except ValidationError as error:
        from axolotl_server.settings.mistakes import describe

        found += describe(error.errors(include_url=False), combined, unread, shape)
    raise ConfigurationError(*found)


def _read_secrets(keys: Keys, sourced: SourcedValue, unread: dict[Keys, str]) -> SourcedValue:
    """Put the content of each secret file in its place."""
    is_list = isinstance(sourced.value, list)
    items = list(sourced.value) if is_list else [sourced.value]
    for index, file in enumerate(items):
        if isinstance(file, SecretFile):
            within = (index,) if is_list else ()
            try:
                items[index] = file.read()
            except UnreadableFile as error:
                origin = sourced.locate((*sourced.written, *within))
                unread[*keys, *within] = f"Setting {dotted(sourced.written)}: {error} ({origin})"
    return msgspec.structs.replace(sourced, value=items if is_list else items[0])
