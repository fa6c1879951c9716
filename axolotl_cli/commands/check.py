"""`axolotl check`: everything that is wrong, before anyone is served."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from axolotl_cli.exit import ExitCode
from axolotl_cli.options import AsJson, EnvFile, Target, ToolSets

if TYPE_CHECKING:
    from axolotl_cli.checking.findings import Finding
    from axolotl_cli.checking.trial_start import TrialStart
    from axolotl_cli.target import ChosenTarget


def check(
    context: typer.Context,
    target: Target = None,
    *,
    toolset: ToolSets = None,
    env_file: EnvFile = None,
    strict: Annotated[bool, typer.Option("--strict", help="Take warnings for errors.")] = False,
    as_json: AsJson = False,
) -> None:
    """Load and compile everything and report all that is wrong, or could be better.

    The exit code is 2 if there are errors.
    """
    from axolotl_cli.target import resolve_target

    choice = resolve_target(target, toolset, env_file=env_file)
    examination = _examine(choice)
    findings = [*examination.findings, *_stray_variables(context, choice)]
    failed = any(strict or finding.severity == "error" for finding in findings)
    if as_json:
        _print_json(choice.target, findings, failed)
    else:
        _print_text(choice.target, findings, examination.counts)
    raise typer.Exit(ExitCode.NOT_CONFIGURED if failed else ExitCode.DONE)


def _stray_variables(context: typer.Context, choice: "ChosenTarget") -> "list[Finding]":
    from axolotl_cli.checking.findings import Finding, Severity
    from axolotl_cli.views.setting_values import stray_variables

    return [Finding(Severity.WARNING, text) for text in stray_variables(context, choice)]


def _examine(choice: "ChosenTarget") -> "TrialStart":
    from axolotl_cli.checking.trial_start import TrialStart
    from axolotl_cli.logs import start_logging
    from axolotl_cli.runtime import reserved_output, run

    examination = TrialStart(choice)
    with reserved_output():
        start_logging("warning")
        run(examination.run())
    return examination


def _print_json(target: str, findings: "list[Finding]", failed: bool) -> None:
    from axolotl_cli.output import print_json

    print_json({"target": target, "ok": not failed, "findings": [_written(finding) for finding in findings]})


def _written(finding: "Finding") -> dict[str, str | None]:
    """Leave out what a finding is not about; `tool` is always there."""
    said = asdict(finding)
    return {key: value for key, value in said.items() if value is not None or key == "tool"}


def _print_text(target: str, findings: "list[Finding]", counts: Mapping[str, int]) -> None:
    from axolotl_cli.text import counted, number, one_line

    errors = sum(finding.severity == "error" for finding in findings)
    for finding in findings:
        colour = "red" if finding.severity == "error" else "yellow"
        typer.echo(f"{typer.style(f'{finding.severity:<8}', fg=colour, bold=True)}{one_line(finding.message)}")
    if findings:
        typer.echo()
    outcome = f"{number(errors, 'error')}, {number(len(findings) - errors, 'warning')}" if findings else "all is well"
    typer.echo(f"{target}: {', '.join(counted(counts))}, {outcome}")
