"""Expansion of URI templates, with which tests make the URIs that a template has to match."""

import re
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias
from urllib.parse import quote

from uritemplate import URITemplate

from axolotl_core.resources.uri_template import UriTemplate

UriValue: TypeAlias = str | int | float | Sequence[str] | None

_STRAY_OR_UNSAFE: Final = re.compile(r'%(?![0-9A-Fa-f]{2})|[^!-~]+|["<>\\^`{|}]')


def expand(template: UriTemplate, values: Mapping[str, UriValue]) -> str:
    """Build a URI. The library encodes nothing next to a triplet, and treats a zero as empty, but not an empty list."""
    library = URITemplate("".join(template._parts))
    operators = {name: one.operator.value for one in library.variables for name, _ in one.variables}
    prefixes = {name: modifiers["prefix"] for one in library.variables for name, modifiers in one.variables}
    plain = {name for name, operator in operators.items() if operator in ("+", "#") and prefixes[name] is None}

    def prepared(name: str, value: UriValue) -> str | list[str] | None:
        if value is None:
            return None
        encode = _encoded if name in plain else str
        if isinstance(value, str | int | float):
            return encode(str(value))
        return [encode(item) for item in value] or None

    return library.expand({name: prepared(name, value) for name, value in values.items()})


def _encoded(value: str) -> str:
    return _STRAY_OR_UNSAFE.sub(lambda found: quote(found[0], safe=""), value)
