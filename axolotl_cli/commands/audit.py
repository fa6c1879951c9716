"""`axolotl audit`: the records of calls, shown and verified."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from axolotl_cli.exit import ExitCode
from axolotl_cli.options import AsJson

if TYPE_CHECKING:
    from axolotl_server.audit.log_reading import Anchor, VerificationReport

_POLL_SECONDS = 0.2
_KEY = "AXOLOTL_AUDIT__KEY"

audit = typer.Typer(name="audit", no_args_is_help=True, help="Show and verify the audit log.")

_Log = Annotated[
    Path, typer.Argument(metavar="LOG", help="The audit log: the current JSON Lines file, or the SQLite database.")
]


@audit.command("verify")
def verify(
    log: _Log,
    key_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help=f"A file with the key of the log. Defaults to {_KEY}, or the file in {_KEY}_FILE."
        ),
    ] = None,
    expect: Annotated[
        str | None,
        typer.Option(metavar="SEQ:HASH", help="A record that must exist, as an earlier run printed it."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Verify that no record was changed, removed or reordered since it was written.

    The exit code is 1 if one was.
    """
    from axolotl_server.audit.log_reading import verify as verify_log

    with _readable(log):
        report = verify_log(log, _key(key_file), _anchor(expect))
    if as_json:
        _print_json(log, report)
    else:
        _print_text(log, report)
    raise typer.Exit(ExitCode.DONE if report.fault is None else ExitCode.TOOL_FAILED)


@audit.command("tail")
def tail(
    log: _Log,
    count: Annotated[int, typer.Option("--lines", "-n", min=1, help="How many records to show.")] = 10,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Wait for new records until Ctrl-C.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show the last records, one per line."""
    from axolotl_server.audit.chain import read_link
    from axolotl_server.audit.log_reading import follow as follow_log
    from axolotl_server.audit.log_reading import last_lines

    with _readable(log):
        lines = last_lines(log, count)
        for line in lines:
            _show(line, as_json)
        if follow:
            link = read_link(lines[-1]) if lines else None
            for line in follow_log(log, 0 if link is None else link.seq, _wait):
                _show(line, as_json)


@contextmanager
def _readable(log: Path) -> Iterator[None]:
    import sqlite3

    from axolotl_core.errors import ConfigurationError

    try:
        yield
    except (OSError, sqlite3.Error) as error:
        raise ConfigurationError(f"The audit log {log} cannot be read: {error}") from error


def _key(file: Path | None) -> str | None:
    import os

    from axolotl_core.errors import ConfigurationError
    from axolotl_server.configuration.secret_files import UnreadableFile, read_secret

    named = os.environ.get(f"{_KEY}_FILE") if file is None and _KEY not in os.environ else file
    try:
        return os.environ.get(_KEY) if not named else read_secret(named)
    except UnreadableFile as error:
        raise ConfigurationError(f"The key file: {error}") from None


def _anchor(expect: str | None) -> "Anchor | None":
    import re

    from axolotl_server.audit.log_reading import Anchor

    if expect is None:
        return None
    match = re.fullmatch("([0-9]{1,18}):([0-9a-f]{64})", expect)
    if match is None:
        raise typer.BadParameter("write the number of a record, a colon and its hash", param_hint="--expect")
    return Anchor(int(match[1]), match[2])


def _print_json(log: Path, report: "VerificationReport") -> None:
    import msgspec

    from axolotl_cli.output import print_json

    fault = None if report.fault is None else report.fault._asdict()
    print_json({"log": str(log), "ok": fault is None, **msgspec.to_builtins(report), "fault": fault})


def _print_text(log: Path, report: "VerificationReport") -> None:
    from axolotl_cli.text import number, one_line

    if report.fault is not None:
        kind, place, text = report.fault
        typer.echo(f"{typer.style(f'{kind:<11}', fg='red', bold=True)}{one_line(f'{place}: {text}')}")
    for warning in _warnings(report):
        typer.echo(f"{typer.style('warning    ', fg='yellow', bold=True)}{one_line(warning)}")
    if report.fault is None:
        typer.echo(f"{log}: {number(report.records, 'record')} verified")
        typer.echo(f"The last record is {report.last}:{report.head}")
    else:
        typer.echo(f"{log}: {number(report.records, 'record')} verified before it")


def _warnings(report: "VerificationReport") -> Iterator[str]:
    from axolotl_cli.text import number

    if report.repairs:
        yield f"{number(report.repairs, 'incomplete record')} cut off after a crash and kept next to the log"
    if report.lost:
        yield f"{number(report.lost, 'record')} could not be written"
    for start in report.unfinished:
        yield f"{start.kind} {start.name} started at {start.time} and has no end (call {start.call_id})"


def _show(line: bytes, as_json: bool) -> None:
    import json

    from axolotl_cli.text import one_line

    if as_json:
        typer.echo(line.decode())
        return
    try:
        record = json.loads(line)
    except ValueError:
        record = {"event": "unreadable"}
    typer.echo(one_line("  ".join(_columns(record)).rstrip()))


def _columns(record: dict[str, Any]) -> Iterator[str]:
    yield str(record.get("time", ""))
    yield f"{record.get('outcome') or record.get('event') or '':<17}"
    if "name" in record:
        yield f"{record.get('kind')} {record['name']}"
        tenant = record.get("tenant")
        yield f"{record.get('subject')}" + (f" of {tenant}" if tenant else "")
    if "duration_seconds" in record:
        yield f"{1000 * record['duration_seconds']:.1f} ms"
    yield from (f"{key}={record[key]}" for key in ("reason", "rule", "lost") if key in record)


def _wait() -> None:
    import time

    time.sleep(_POLL_SECONDS)
