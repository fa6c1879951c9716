"""A line for each request that a server answers, for people at a terminal."""

import time
from typing import TYPE_CHECKING, Final

import typer

from axolotl_cli.lines import one_line

if TYPE_CHECKING:
    from axolotl_server.console.records import CallRecord

__all__ = ["CallLog", "line_for"]

_OWN_PAGE: Final = "axolotl-console"
_COLOURS: Final = {"ok": "green", "input_required": "cyan", "cancelled": "yellow", "timeout": "yellow"}
_OUTCOME_WIDTH: Final = 17
_NAME_WIDTH: Final = 24


class CallLog:
    """Writes to the standard error stream; what the console's page asks for itself is left out."""

    def hear(self, record: "CallRecord") -> None:
        """Write a request that has ended."""
        if record.outcome is None or (record.kind is None and (record.client or "").startswith(_OWN_PAGE)):
            return
        typer.echo(line_for(record), err=True)


def line_for(record: "CallRecord") -> str:
    """Write one request: when, how it ended, what it was, how long it took, and who asked."""
    when = time.strftime("%H:%M:%S", time.localtime(record.began))
    outcome = typer.style(f"{record.outcome:<{_OUTCOME_WIDTH}}", fg=_COLOURS.get(record.outcome or "", "red"))
    what = one_line(record.name or "") if record.kind is not None else one_line(record.method)
    took = f"{_duration(record.seconds or 0.0):>9}"
    line = (
        f"{typer.style(when, dim=True)} {outcome} {_styled(what, record)} {took}  {typer.style(_who(record), dim=True)}"
    )
    if record.arguments is not None:
        line = f"{line} {one_line(bytes(record.arguments).decode())}"
    return line.rstrip()


def _styled(what: str, record: "CallRecord") -> str:
    padded = f"{what:<{_NAME_WIDTH}}"
    return typer.style(padded, dim=True) if record.kind is None else typer.style(padded, bold=True)


def _who(record: "CallRecord") -> str:
    person = record.subject if record.tenant is None else f"{record.subject} of {record.tenant}"
    known = (record.client, None if person == "anonymous" else person, record.reason, record.rule)
    return one_line(", ".join(filter(None, known)))


def _duration(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms" if seconds < 1 else f"{seconds:.2f} s"
