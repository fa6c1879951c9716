"""`axolotl check`: errors and possible improvements, before a server starts."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated

import typer

from axolotl_cli.checking.trial_start import Finding, Severity, try_to_start
from axolotl_cli.exit import ExitCode
from axolotl_cli.logs import start_logging
from axolotl_cli.options import AsJson, FileOptions, Target, ToolSets
from axolotl_cli.output import print_json
from axolotl_cli.runtime import reserved_output, run
from axolotl_cli.target import resolve_target
from axolotl_cli.text import counted, number, one_line
from axolotl_cli.views.setting_values import unknown_variables_of


def check(
    target: Target = None,
    *,
    toolset: ToolSets = None,
    files: FileOptions,
    strict: Annotated[bool, typer.Option("--strict", help="Treat warnings as errors.")] = False,
    as_json: AsJson = False,
) -> None:
    """Start and stop the server, and report errors or possible improvements.

    Errors in the settings are reported before those of features. The exit code is 2 if there are errors.
    """
    chosen = resolve_target(target, toolset, files=files)
    with reserved_output():
        start_logging("error")
        trial = run(try_to_start(chosen))
    findings = [*trial.findings, *(Finding(Severity.WARNING, text) for text in unknown_variables_of(chosen))]
    failed = any(strict or finding.severity == "error" for finding in findings)
    if as_json:
        described = [
            {key: value for key, value in asdict(one).items() if value is not None or key == "tool"} for one in findings
        ]
        print_json({"target": chosen.name, "ok": not failed, "findings": described})
    else:
        _print_text(chosen.name, findings, trial.counts)
    raise typer.Exit(ExitCode.NOT_CONFIGURED if failed else ExitCode.DONE)


def _print_text(target: str, findings: list[Finding], counts: Mapping[str, int]) -> None:
    errors = sum(finding.severity == "error" for finding in findings)
    for finding in findings:
        color = "red" if finding.severity == "error" else "yellow"
        typer.echo(f"{typer.style(f'{finding.severity:<8}', fg=color, bold=True)}{one_line(finding.message)}")
    if findings:
        typer.echo()
    outcome = f"{number(errors, 'error')}, {number(len(findings) - errors, 'warning')}" if findings else "no problems"
    typer.echo(f"{target}: {', '.join([*(counted(counts) if counts else ()), outcome])}")
