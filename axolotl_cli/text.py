"""Plain text for people: escaped lines, counts and configuration errors."""

import logging
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import typer

if TYPE_CHECKING:
    from axolotl_server.host import ServerHost

_NEVER_SHOWN: Final = "\x7f-\x9f\u2028-\u202e\u2066-\u2069"
"""Control characters outside ASCII, line separators, and characters that reverse the direction of a line."""
_CONTROLS: Final = re.compile(f"[\x00-\x1f{_NEVER_SHOWN}]")
_CONTROLS_WITHIN_LINES: Final = re.compile(f"[\x00-\x08\x0b-\x1f{_NEVER_SHOWN}]")
_CONTROLS_IN_JSON: Final = re.compile(f"[{_NEVER_SHOWN}]")


def one_line(text: str) -> str:
    """Escape control characters, including line breaks."""
    return _CONTROLS.sub(_escape, text)


def escape_controls(text: str) -> str:
    """Escape control characters except line breaks and tabs."""
    return _CONTROLS_WITHIN_LINES.sub(_escape, text)


def escape_json(text: str) -> str:
    """Escape the control characters that JSON may contain, so that it means the same."""
    return _CONTROLS_IN_JSON.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _escape(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode("ascii")


def counts_in(host: "ServerHost") -> dict[str, int]:
    """Count the features of a server, by kind."""
    return {kind.removesuffix("s"): len(found) for kind, found in host.bindings().items()}


def counted(counts: Mapping[str, int]) -> list[str]:
    """Format the counts that are not zero; if all are, say that there are no tools."""
    found = [number(count, kind) for kind, count in counts.items() if count]
    return found or [number(0, "tool")]


def enumeration(parts: Sequence[str]) -> str:
    """Join parts with commas and "and"."""
    *others, last = parts
    return f"{', '.join(others)} and {last}" if others else last


def number(count: int, noun: str) -> str:
    """Format a count with its noun, for example "1 tool" or "2 tools"."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def report_findings(error: Exception) -> bool:
    """Print a configuration error, one finding per line; return False for any other error."""
    from axolotl_core.errors import ConfigurationError

    if not isinstance(error, ConfigurationError):
        return False
    for finding in error.findings:
        report(finding)
    if error.__cause__ is not None:
        logging.getLogger("axolotl").debug("caused by", exc_info=error.__cause__)
    return True


def report(problem: str) -> None:
    """Print an error on one line."""
    typer.echo(f"{typer.style('Error:', fg='red', bold=True)} {one_line(problem)}", err=True)


def warn(text: str) -> None:
    """Print a warning."""
    typer.echo(f"{typer.style('Warning:', fg='yellow', bold=True)} {text}", err=True)


def print_status(text: str) -> None:
    """Print on stderr what a server does; one whose stderr cannot be written, such as on a full disk, still serves."""
    with suppress(OSError):
        typer.echo(text, err=True)
