"""What a person is told when something is wrong with the configuration."""

import logging
import re
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import typer

if TYPE_CHECKING:
    from axolotl_server.host import ServerHost

_CONTROLS: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_CONTROLS_WITHIN_LINES: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")


def one_line(text: str) -> str:
    """Write control characters as escapes, line breaks among them."""
    return _CONTROLS.sub(_escape, text)


def escape_controls(text: str) -> str:
    """Write control characters as escapes, save line breaks and tabs."""
    return _CONTROLS_WITHIN_LINES.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode("ascii")


def counts_in(host: "ServerHost") -> dict[str, int]:
    """Count what a server offers, by kind."""
    return {
        "tool": len(host.catalogue.bindings()),
        "prompt": len(host.prompts.bindings()),
        "resource": len(host.resources.bindings()),
        "template": len(host.templates.bindings()),
    }


def counted(counts: Mapping[str, int]) -> list[str]:
    """Name what there is of each kind; where there is nothing at all, that there are no tools."""
    found = [number(count, kind) for kind, count in counts.items() if count]
    return found or [number(0, "tool")]


def enumeration(parts: Sequence[str]) -> str:
    """Join the parts of a sentence."""
    *others, last = parts
    return f"{', '.join(others)} and {last}" if others else last


def number(count: int, noun: str) -> str:
    """Write how many there are."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def report_findings(error: Exception) -> bool:
    """Write what is wrong with the configuration, a finding a line; answers False for an error of another kind."""
    findings = _findings_of(error)
    for finding in findings:
        report(finding)
    if findings and error.__cause__ is not None:
        logging.getLogger("axolotl").debug("the cause", exc_info=error.__cause__)
    return bool(findings)


def report(problem: str) -> None:
    """Write one line to the standard error stream."""
    typer.echo(f"{typer.style('Error:', fg='red', bold=True)} {one_line(problem)}", err=True)


def _findings_of(error: Exception) -> Sequence[str]:
    """Read a ConfigurationError; where its module was never imported, the error is none."""
    errors = sys.modules.get("axolotl_core.errors")
    return error.findings if errors is not None and isinstance(error, errors.ConfigurationError) else ()
