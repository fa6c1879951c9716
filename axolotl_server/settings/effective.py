"""Effective settings, each with its origin; secrets are masked."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic import BaseModel, SecretBytes, SecretStr
from pydantic_core import to_jsonable_python

from axolotl_server.settings.loading import LoadedSettings
from axolotl_server.settings.origins import DEFAULT, Keys, Origin, dotted
from axolotl_server.settings.settings_shape import SETTINGS

MASK: Final = "********"
_PASSWORD: Final = re.compile(r"(?<=://)([^/?#\s@:]*):[^/?#\s@]+(?=@)")
_HOST: Final = r"(?:[\w.%-]*|\[[\da-fA-F:.]+\])(?::\d+)?"
_SECRET_URL: Final = re.compile(
    rf"([a-z][a-z0-9+.-]*://)(?:([^/?#\s@:]*)(:[^/?#\s]*)?@)?({_HOST}(?:,{_HOST})*(?:/[^?#@\s]*)?)(\?[^#@\s]*)?"
)
"""A URL in which it is certain what the password is: scheme, user, password, place and query."""


@dataclass(frozen=True, slots=True)
class EffectiveValue:
    """The effective value of a setting."""

    keys: Keys
    value: Any
    """The value as JSON, without secrets."""
    origin: Origin

    @property
    def name(self) -> str:
        """The name of the setting, such as `http.port`."""
        return dotted(self.keys)


def effective_values(loaded: LoadedSettings) -> Iterator[EffectiveValue]:
    """List every setting, section by section."""
    for keys, value in _leaves(loaded.settings, ()):
        origin = loaded.origin_of(keys)
        # A setting that always exists; in a table that a user adds, such as a rule, only what is set counts.
        is_fixed = all(key in SETTINGS.at(*keys[:index]).fields for index, key in enumerate(keys))
        if origin != DEFAULT or is_fixed:
            is_url = keys[-1] == "url" and isinstance(value, SecretStr)
            shown = _without_secrets(value) if is_url else masked(value)
            section = loaded.settings.extensions[str(keys[1])] if keys[0] == "extensions" and keys[1:] else None
            if isinstance(section, Mapping) and section:
                shown = MASK  # without the extension, nothing says whether it is a secret
            yield EffectiveValue(keys, shown, origin)


def _without_secrets(url: SecretStr) -> str:
    """Show scheme, user and host of a secret URL, but no password and no query, which may contain one."""
    found = _SECRET_URL.fullmatch(url.get_secret_value())
    if found is None:
        return MASK
    scheme, user, password, place, query = found.groups()
    login = "" if user is None else f"{user}:{MASK}@" if password else f"{user}@"
    return f"{scheme}{login}{place}" + (f"?{MASK}" if query else "")


def masked(value: Any) -> Any:
    """Return a value as JSON, with a mask for each secret in it and for the passwords of URLs."""
    match value:
        case SecretStr() | SecretBytes():
            return MASK
        case BaseModel():
            return {key: masked(inner) for key, inner in value}
        case Mapping():
            return {str(key): masked(inner) for key, inner in value.items()}
        case set() | frozenset():
            return sorted(map(masked, value), key=str)
        case list() | tuple():
            return [masked(inner) for inner in value]
        case str():
            return _PASSWORD.sub(rf"\1:{MASK}", value)
    return to_jsonable_python(value)


def _leaves(value: Any, keys: Keys) -> Iterator[tuple[Keys, Any]]:
    """List the values in tables and in lists of tables; an empty one is a value itself."""
    inner: list[tuple[str | int, Any]] = []
    match value:
        case BaseModel() if any(isinstance(key, int) for key in keys):
            # Of a table in a list, only what is set, because the list is set as a whole.
            inner = [(key, item) for key, item in value if key in value.model_fields_set]
        case BaseModel() | Mapping():
            inner = [*dict(value).items()]
        case list() | tuple() if any(isinstance(item, BaseModel) for item in value):
            inner = [*enumerate(value)]
    if not inner:
        yield keys, value
    for key, item in inner:
        yield from _leaves(item, (*keys, key))
