"""The filter of `axolotl audit tail`: records by subject, tool, outcome and time."""

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from typing import Any, Final

import typer

_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


class AuditFilter:
    """Tells whether a line of an audit log has all the wanted properties."""

    def __init__(
        self,
        *,
        subject: str | None = None,
        tool: str | None = None,
        outcome: str | None = None,
        since: str | None = None,
        until: str | None = None,
    ) -> None:
        kind = None if tool is None else "tool"
        wanted = {"subject": subject, "name": tool, "kind": kind, "outcome": outcome}
        self._patterns = {field: pattern for field, pattern in wanted.items() if pattern is not None}
        self._since = None if since is None else _time(since, "--since")
        self._until = None if until is None else _time(until, "--until")

    @property
    def is_active(self) -> bool:
        """Whether anything is left out."""
        return bool(self._patterns) or self._since is not None or self._until is not None

    def __call__(self, line: bytes) -> bool:
        if not self.is_active:
            return True
        try:
            record = json.loads(line)
        except ValueError:
            return False
        return isinstance(record, dict) and self._matches(record)

    def _matches(self, record: Mapping[str, Any]) -> bool:
        shown = {**record, "outcome": record.get("outcome") or record.get("event")}  # as it is printed
        if not all(fnmatchcase(str(shown.get(field, "")), one) for field, one in self._patterns.items()):
            return False
        try:
            time = datetime.fromisoformat(str(record.get("time")))
        except ValueError:
            return False
        return (self._since is None or time >= self._since) and (self._until is None or time < self._until)


def _time(text: str, option: str) -> datetime:
    """Read a time, or how long ago it was; a time without an offset is UTC, as in the log."""
    ago = re.fullmatch(r"([0-9]{1,6})([smhd])", text)
    if ago is not None:
        return datetime.now(UTC) - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(
            f"{text!r} is not a time: write 2026-11-17T08:00, or 30m, 2h or 7d for a time ago", param_hint=option
        ) from None
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)
