"""What a person is told when something is wrong with the configuration."""

import logging
import sys
from collections.abc import Sequence

import typer

from axolotl_cli.lines import one_line

__all__ = ["report", "report_findings"]


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
