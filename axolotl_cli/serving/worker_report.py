"""Reports of a worker: its features, problems and, in development, its calls."""

import logging
import socket
import time
import traceback
from typing import TYPE_CHECKING, Any, Final

import typer

from axolotl_cli.logs import reduced_traceback
from axolotl_cli.serving.address import url_of
from axolotl_cli.serving.console import console_of
from axolotl_cli.text import counts_in, one_line, print_status
from axolotl_core.errors import ConfigurationError
from axolotl_server.host import ServerHost
from axolotl_server.observation.tracebacks import user_frames

if TYPE_CHECKING:
    from axolotl_server.extensions.console.journal import CallRecord


def describe_server(host: ServerHost, listener: socket.socket) -> dict[str, Any]:
    """Describe a server: name, URL and number of features."""
    url, console = url_of(host.settings.http, listener), console_of(host)
    return {
        "name": host.settings.server.name,
        "url": url,
        "console": None if console is None else console.link(url),
        "counts": counts_in(host),
    }


_MAX_CHARACTERS: Final = 8000


def explain(error: BaseException) -> str:
    """Describe an error, with a traceback if it comes from the user's code."""
    findings = error.findings if isinstance(error, ConfigurationError) else ()
    cause = _root(error) if findings else error
    parts = [*findings, *(() if cause is None else ("", reduced_traceback(cause)))]
    return "\n".join(parts).strip()[:_MAX_CHARACTERS]


def _root(error: BaseException) -> BaseException | None:
    """Find the error of the user's code behind a configuration error; None if there is none."""
    root = error
    while root.__cause__ is not None:
        root = root.__cause__
    is_users = bool(user_frames(traceback.extract_tb(root.__traceback__))) or isinstance(root, SyntaxError)
    return root if is_users and not isinstance(root, ConfigurationError) else None


_log: Final = logging.getLogger("axolotl")
_CONSOLE_CLIENT: Final = "axolotl-console"
_COLORS: Final = {"ok": "green", "input_required": "cyan", "cancelled": "yellow", "timeout": "yellow"}
_OUTCOME_WIDTH: Final = 17
_NAME_WIDTH: Final = 24


def print_call(record: "CallRecord") -> None:
    """Print a request that has ended, unless the console's own page sent it."""
    if not _is_shown(record):
        return
    print_status(format_call(record))


def log_call(record: "CallRecord") -> None:
    """Log a request in the same way, for a log of JSON lines."""
    if not _is_shown(record):
        return
    what = record.name if record.kind is not None else record.method
    caller = f" for {who}" if (who := _who(record)) else ""
    arguments = "" if record.arguments is None else f" {bytes(record.arguments).decode()}"
    _log.info("%s: %s in %s%s%s", what, record.outcome, _duration(record.seconds or 0.0), caller, arguments)


def _is_shown(record: "CallRecord") -> bool:
    """Whether a request has ended and does not come from the console's own page."""
    is_console = record.kind is None and (record.client or "").startswith(_CONSOLE_CLIENT)
    return record.outcome is not None and not is_console


def format_call(record: "CallRecord") -> str:
    """Format a request: time, outcome, name, duration and caller."""
    when = time.strftime("%H:%M:%S", time.localtime(record.began))
    outcome = typer.style(f"{record.outcome:<{_OUTCOME_WIDTH}}", fg=_COLORS.get(record.outcome or "", "red"))
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
