"""`axolotl audit`: the verification of its records."""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from axolotl_cli.exit import ExitCode
from axolotl_cli.options import AsJson, FileOptions
from axolotl_cli.output import print_json
from axolotl_cli.target import resolve_target
from axolotl_cli.text import number, one_line
from axolotl_core.errors import ConfigurationError
from axolotl_server.audit.log_files import covers, find_logs
from axolotl_server.audit.log_reading import Anchor, VerificationReport, missing_log
from axolotl_server.audit.log_reading import verify as verify_log
from axolotl_server.hosting.worker_settings import named_logs
from axolotl_server.settings.secret_files import UnreadableFile, read_secret
from axolotl_server.settings.server import ServerSettings

audit = typer.Typer(name="audit", no_args_is_help=True, help="Verify the audit log.")


@audit.callback()
def _group() -> None:
    """Keep `verify` a subcommand, although it is the only one."""


_Logs = Annotated[
    Path,
    typer.Argument(
        metavar="LOG",
        help="The audit log, a directory with logs, or a pattern such as 'audit-*.jsonl'; {worker} matches any text.",
    ),
]


@audit.command("verify")
def verify(
    log: _Logs,
    key_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A file with the key of the log. Defaults to the setting audit.key."),
    ] = None,
    expect: Annotated[
        str | None, typer.Option(metavar="SEQ:HASH", help="A record that must exist, as an earlier run printed it.")
    ] = None,
    *,
    files: FileOptions,
    as_json: AsJson = False,
) -> None:
    """Verify that no record was changed, removed or reordered since it was written.

    The exit code is 1 if verification fails.
    """
    anchor, place, directory = _anchor(expect), _absolute(log), Path.cwd()
    with _readable(log):
        logs = find_logs(log)
    if not logs:
        raise typer.BadParameter(f"there is no audit log at {log}")
    if anchor is not None and len(logs) > 1:
        raise typer.BadParameter("this record is in one log: name that log", param_hint="--expect")
    names = {_absolute(found): found for found in logs}
    # This may go to the directory of the settings file.
    configured = resolve_target(None, files=files, is_required=False).settings
    key = _key(key_file, configured)
    reports = {}
    for path, name in names.items():
        with _readable(name):
            reports[name] = verify_log(path, key, anchor)
    missing = [path for path in map(_absolute, named_logs(configured)) if covers(place, path) and path not in names]
    for path in missing:  # named like those that were found
        reports[path if log.is_absolute() else Path(os.path.relpath(path, directory))] = missing_log(path)
    found = None if [place] == list(names) else len(logs)
    if as_json:
        _print_json(reports, found)
    else:
        for name, report in reports.items():
            _print_text(name, report)
        if found is not None:
            typer.echo(f"{number(found, 'log')} found")
    is_intact = all(report.fault is None for report in reports.values())
    raise typer.Exit(ExitCode.DONE if is_intact else ExitCode.TOOL_FAILED)


@contextmanager
def _readable(log: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ConfigurationError(f"The audit log {log} cannot be read: {error}") from error


def _absolute(path: Path) -> Path:
    return Path(os.path.abspath(path))


def _key(file: Path | None, settings: ServerSettings) -> str | None:
    if file is None:
        key = settings.audit.key
        return None if key is None else key.get_secret_value()
    try:
        return read_secret(file)
    except UnreadableFile as error:
        raise ConfigurationError(f"The key file: {error}") from None


def _anchor(expect: str | None) -> Anchor | None:
    if expect is None:
        return None
    match = re.fullmatch("([0-9]{1,18}):([0-9a-f]{64})", expect)
    if match is None:
        raise typer.BadParameter("write the number of a record, a colon and its hash", param_hint="--expect")
    return Anchor(int(match[1]), match[2])


def _print_json(reports: Mapping[Path, VerificationReport], found: int | None) -> None:
    """Print one report, or all with the number of logs that were found."""
    described = []
    for log, report in reports.items():
        fault = None if report.fault is None else report.fault._asdict()
        described.append({"log": str(log), "ok": fault is None, **msgspec.to_builtins(report), "fault": fault})
    together = {"ok": all(one["ok"] for one in described), "found": found, "logs": described}
    print_json(described[0] if found is None else together)


def _print_text(log: Path, report: VerificationReport) -> None:
    if report.fault is not None:
        kind, place, text = report.fault
        typer.echo(f"{typer.style(f'{kind:<11}', fg='red', bold=True)}{one_line(f'{place}: {text}')}")
    warnings = []
    if report.repairs:
        warnings.append(f"{number(report.repairs, 'incomplete record')} cut off after a crash and kept next to the log")
    if report.lost:
        warnings.append(f"{number(report.lost, 'record')} could not be written")
    if report.unclosed:
        warnings.append(
            "there is no closing record, and no process writes to the log: its process was killed, or records at the "
            "end were removed"
        )
    warnings += [
        f"{start.kind} {start.name} started at {start.time} and has no end (call {start.call_id})"
        for start in report.unfinished
    ]
    for warning in warnings:
        typer.echo(f"{typer.style('warning    ', fg='yellow', bold=True)}{one_line(warning)}")
    if report.fault is None:
        typer.echo(f"{log}: {number(report.records, 'record')} verified")
        typer.echo(f"The last record is {report.last}:{report.head}")
    else:
        typer.echo(f"{log}: {number(report.records, 'record')} verified before it")
