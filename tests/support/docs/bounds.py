"""All bounds of a server: one row each, with its default, the error that a client sees and the test that keeps it."""

import importlib
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from axolotl_server.settings.server import ServerSettings
from tests.support.docs.pages import REPOSITORY
from tests.support.docs.tables import table


@dataclass(frozen=True, slots=True)
class Bound:
    """One bound. `limit` is a setting, or a constant as `module:NAME`."""

    what: str
    limit: str
    beyond: str
    test: str
    security: bool = False
    """Whether the page about security lists it too."""

    @property
    def is_setting(self) -> bool:
        """Whether operators can change it."""
        return ":" not in self.limit

    @property
    def default(self) -> str:
        """The default, read from the code."""
        value = _setting(self.limit) if self.is_setting else _constant(self.limit)
        return written(self.limit, value)

    @property
    def setting(self) -> str:
        """The name of the setting for a table."""
        return f"`{self.limit}`" if self.is_setting else "–"


REGISTRY: Final = Path(__file__).with_name("bounds.toml")
OVERRIDES: Final = ("tools.<name>.", "toolsets.<name>.")
"""Settings that replace the one of the same name under `limits`, for some tools."""

NOT_BOUNDS: Final[Mapping[str, str]] = {
    "http.port": "an address",
    "http.workers": "the operator's choice",
    "http.keep_alive_seconds": "an interval",
    "http.drain_delay_seconds": "when something begins",
    "caching.list_ttl_seconds": "a hint for clients",
    "caching.resource_ttl_seconds": "a hint for clients",
    "quotas.rules.<name>.rate_per_second": "a bound that the operator defines",
    "quotas.rules.<name>.burst": "a bound that the operator defines",
    "quotas.rules.<name>.limit": "a bound that the operator defines",
    "auth.token_cache_seconds": "how old an answer may be",
}
"""Numeric settings that limit nothing, with what they are instead."""


@cache
def bounds_by_group() -> dict[str, list[Bound]]:
    """Read all bounds, by what they are about."""
    groups = tomllib.loads(REGISTRY.read_text(encoding="utf-8"))
    return {name: [Bound(**row) for row in rows] for name, rows in groups.items()}


def all_bounds() -> list[Bound]:
    """List all bounds."""
    return [bound for group in bounds_by_group().values() for bound in group]


def bounds_table() -> str:
    """Build a table per group for the page about limits."""
    columns = ("Bound", "Default", "Setting", "Beyond it", "Test")
    parts = [(f"### {name}\n", table(columns, map(_row, bounds))) for name, bounds in bounds_by_group().items()]
    return "\n".join(part for pair in parts for part in pair)


def short_bounds_table() -> str:
    """Build the table of the page about security: what a client that means harm runs into."""
    rows = [(one.what, one.default, one.setting, one.beyond) for one in all_bounds() if one.security]
    return table(("Bound", "Default", "Setting", "Beyond it"), rows)


def written(name: str, value: Any) -> str:
    """Write a value with its unit, which the name ends with."""
    if value is None:
        return "unlimited"
    if re.search(r"bytes$", name, re.IGNORECASE):
        return next(f"{value / size:g} {unit}" for size, unit in _UNITS if value >= size)
    if isinstance(value, float) and not re.search(r"seconds$", name, re.IGNORECASE):
        return f"{value:g}"
    return f"{value:g} s" if re.search(r"seconds$", name, re.IGNORECASE) else f"{value:,}"


_UNITS: Final = ((1 << 20, "MiB"), (1 << 10, "KiB"), (1, "bytes"))


def _row(bound: Bound) -> tuple[str, ...]:
    file, _, name = bound.test.partition("::")
    link = f"[{name or file.rpartition('/')[2]}]({REPOSITORY}{file})"
    return bound.what, bound.default, bound.setting, bound.beyond, link


def _setting(name: str) -> Any:
    value: Any = ServerSettings()
    for part in name.split("."):
        value = getattr(value, part)
    return value


def _constant(name: str) -> Any:
    module, _, constant = name.partition(":")
    return getattr(importlib.import_module(module), constant)
