"""Weighing all sources: what holds, and who said it."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from pydantic import ValidationError

from axolotl_core.errors import ConfigurationError
from axolotl_server.configuration.environment import read_variables
from axolotl_server.configuration.secret_files import SecretFile, UnreadableFile, find_secret_files
from axolotl_server.configuration.settings_file import FileSettings
from axolotl_server.configuration.sourced_values import (
    CONTAINER,
    DEFAULT,
    Keys,
    Origin,
    Source,
    SourcedValue,
    Tree,
    merge,
    reach,
    tree_of,
)
from axolotl_server.settings.server import ServerSettings

_FLAGS: Final[Mapping[Keys, str]] = {
    ("http", "host"): "--host",
    ("http", "port"): "--port",
    ("http", "path"): "--path",
    ("http", "workers"): "--workers",
    ("log_level",): "--log-level",
}
"""What the flags of the command line set; code may give others in the same way."""


@dataclass(frozen=True, slots=True)
class LoadedSettings:
    """The settings that hold, each with its origin."""

    settings: ServerSettings
    said: Tree = field(repr=False)

    def origin_of(self, keys: Keys) -> Origin:
        """Say where a value came from."""
        node, rest = reach(self.said, keys)
        return node.origin(rest) if isinstance(node, SourcedValue) else DEFAULT


def load_settings(
    *,
    flags: Mapping[str, Any] | None = None,
    file: FileSettings | None = None,
    container: Mapping[str, Any] | None = None,
) -> ServerSettings:
    """Weigh all sources and check the outcome.

    Raises:
        ConfigurationError: if a value is wrong or a key unknown; it names the place, the origin and the nearest right
            key.
    """
    return load_with_origins(flags=flags, file=file, container=container).settings


def load_with_origins(
    *,
    flags: Mapping[str, Any] | None = None,
    file: FileSettings | None = None,
    container: Mapping[str, Any] | None = None,
) -> LoadedSettings:
    """Weigh all sources and check the outcome, and remember who said what.

    Raises:
        ConfigurationError: as `load_settings` does.
    """
    file = file or FileSettings()
    findings: list[str] = []
    layers = [
        tree_of(container or {}, lambda keys: CONTAINER),
        tree_of(file.values, file.locate),
        *_variables(file, findings),
        tree_of(flags or {}, _flag),
    ]
    tree = merge(*(find_secret_files(_folded(layer), ServerSettings, findings) for layer in layers))
    return _checked(tree, findings)


def _variables(file: FileSettings, findings: list[str]) -> list[Tree]:
    """Read both kinds of variables; what the environment says beats the file of variables."""
    trees = [] if (more := file.env_file) is None else [read_variables(more.variables, more.locate, findings)]
    return [*trees, read_variables(os.environ, partial(Origin, Source.ENVIRONMENT), findings)]


def _flag(keys: Keys) -> Origin:
    return Origin(Source.FLAG, _FLAGS.get(keys, ""))


def _folded(layer: Tree) -> Tree:
    """Fold the case of the tools' names: the environment has none, and all sources must mean the same tool."""
    tools = layer.get("tools")
    if not isinstance(tools, dict):
        return layer
    return {**layer, "tools": {name.casefold(): said for name, said in tools.items()}}


def _checked(tree: Tree, findings: list[str]) -> LoadedSettings:
    """Check all values, whatever was found before, so that everything is told at once."""
    unread: dict[Keys, str] = {}
    try:
        settings = ServerSettings.model_validate(_plain(tree, (), unread))
    except ValidationError as error:
        from axolotl_server.configuration.mistakes import describe

        mistakes = describe(error, tree, unread)
        raise ConfigurationError(*findings, *unread.values(), *mistakes) from None
    if findings or unread:
        raise ConfigurationError(*findings, *unread.values())
    return LoadedSettings(settings, tree)


def _plain(node: Any, keys: Keys, unread: dict[Keys, str], said: SourcedValue | None = None) -> Any:
    """Take the values out of a tree, and the secrets out of their files."""
    match node:
        case SourcedValue(value=value):
            return _plain(value, keys, unread, node)
        case dict():
            return {key: _plain(value, (*keys, key), unread, said) for key, value in node.items()}
        case list():
            return [_plain(value, (*keys, index), unread, said) for index, value in enumerate(node)]
        case SecretFile():
            try:
                return node.read()
            except UnreadableFile as error:
                assert said is not None
                unread[keys] = f"Setting {'.'.join(map(str, said.keys))}: {error} ({said.origin()})"
    return node
