"""The version of a store of tasks, and the statements that bring an older store up to date."""

from collections.abc import Iterator
from typing import Final

from axolotl_core.errors import ConfigurationError

_KEYS: Final = (
    "update {tables}tasks set key = null where key is not null and (state = 'ended' or number not in"
    " (select min(number) from {tables}tasks where state <> 'ended' and key is not null group by owner, key))",
    "drop index if exists {tables}tasks_by_key",
    "create unique index tasks_by_key on {tables}tasks (owner, key) where key is not null",
)
_OPEN: Final = (
    "drop index if exists {tables}tasks_by_share",
    "create index if not exists tasks_open on {tables}tasks (share) where call is not null",
)
_STEPS: Final = (_KEYS, _OPEN)
"""The statements that lead from each version to the next; version 0 has no number in the store, and may be empty."""

STORE_VERSION: Final = len(_STEPS)


def steps_from(version: int, tables: str = "") -> Iterator[str]:
    """Return the statements that bring a store up to date; the names of tables get a prefix."""
    return (statement.format(tables=tables) for step in _STEPS[version:] for statement in step)


def check_not_newer(version: int) -> None:
    """Raise ConfigurationError for a store that a newer version of Axolotl has made."""
    if version > STORE_VERSION:
        raise ConfigurationError(
            f"Setting tasks.url: the store has version {version}, and this server knows only {STORE_VERSION}: "
            "update Axolotl, or use another store"
        )


def check_up_to_date(version: int) -> None:
    """Raise ConfigurationError for a store that this server cannot use."""
    check_not_newer(version)
    if version < STORE_VERSION:
        raise ConfigurationError(
            "Setting tasks.url: the database has no tables for tasks, or those of an older version: "
            "run axolotl tasks prepare"
        )
