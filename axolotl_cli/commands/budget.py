"""`axolotl budget`: what the list of tools costs a model."""

from typing import Annotated

import typer

from axolotl_cli.exit import ExitCode
from axolotl_cli.options import AsJson, FileOptions, Target, ToolSets
from axolotl_cli.output import print_json
from axolotl_cli.principal import ActingPrincipal
from axolotl_cli.runtime import with_host
from axolotl_cli.target import resolve_target
from axolotl_cli.text import report as report_problem
from axolotl_cli.views.tool_costs import make_report, print_report


def budget(
    target: Target = None,
    *,
    max_tokens: Annotated[
        int | None, typer.Option("--max-tokens", metavar="N", min=0, help="Fail if the tools cost more tokens.")
    ] = None,
    as_json: AsJson = False,
    principal: ActingPrincipal = None,
    toolset: ToolSets = None,
    files: FileOptions,
) -> None:
    """Show what the tools cost a model: bytes and tokens of names, descriptions and input schemas.

    With --as, only the tools that the principal may use are counted.
    The exit code is 1 if they cost more than --max-tokens.
    """
    chosen = resolve_target(target, toolset, files=files)
    report = with_host(chosen, lambda host: make_report(host, principal, max_tokens))
    if as_json:
        print_json(report)
    else:
        print_report(report)
    if max_tokens is not None and report.total.tokens > max_tokens:
        report_problem(f"The tools cost {report.total.tokens:,} tokens, but at most {max_tokens:,} are allowed")
        raise typer.Exit(ExitCode.OVER_BUDGET)
