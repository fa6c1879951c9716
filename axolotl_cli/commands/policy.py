"""`axolotl policy`: authorization decisions and the rules behind them."""

from dataclasses import asdict
from enum import StrEnum
from typing import Annotated, Final

import typer

from axolotl_cli.exit import ExitCode
from axolotl_cli.options import AsJson, FileOptions, ToolSets
from axolotl_cli.output import print_json, show, table
from axolotl_cli.principal import ActingPrincipal
from axolotl_cli.runtime import with_host
from axolotl_cli.target import resolve_target
from axolotl_cli.text import one_line, report
from axolotl_cli.views.verdict import Verdict, explain_decision

_DENIED: Final = 1

policy = typer.Typer(name="policy", help="Explain authorization decisions.", no_args_is_help=True)


class FeatureKind(StrEnum):
    """Kinds of features that a policy decides about."""

    TOOL = "tool"
    PROMPT = "prompt"
    RESOURCE = "resource"
    SKILL = "skill"


@policy.callback()
def start() -> None:
    """Explain authorization decisions."""


@policy.command("explain")
def explain(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="The name of a tool, prompt or resource, or the URI of a resource.")
    ],
    *,
    principal: ActingPrincipal,
    kind: Annotated[
        FeatureKind | None,
        typer.Option(
            "--kind",
            metavar="KIND",
            help="The kind of feature if several have this name: tool, prompt, resource or skill. By default, a tool "
            "comes first.",
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option("--target", metavar="TARGET", envvar="AXOLOTL_TARGET", help="The container, as for serve."),
    ] = None,
    toolset: ToolSets = None,
    files: FileOptions,
    as_json: AsJson = False,
) -> None:
    """Explain whether a principal may use a tool, prompt, resource or file of a skill, and which rule decides.

    The exit code is 0 if it is allowed, 1 if it is denied, 3 if there is no such feature.
    """

    chosen = resolve_target(target, toolset, files=files)
    verdict = with_host(chosen, lambda host: explain_decision(host, principal, kind and kind.value, name))
    if isinstance(verdict, str):
        report(verdict)
        raise typer.Exit(ExitCode.REFUSED)
    _print(verdict, as_json)
    raise typer.Exit(ExitCode.DONE if verdict.allowed else _DENIED)


def _print(verdict: Verdict, as_json: bool) -> None:
    if as_json:
        print_json(asdict(verdict))
        return

    subject, reason = verdict.principal["subject"], f" ({verdict.reason})" if verdict.reason else ""
    word, may = ("allowed", "may") if verdict.allowed else ("denied", "may not")
    typer.echo(one_line(f"{subject} {may} use the {verdict.kind} {verdict.name}"))
    typer.echo(one_line(f"{word} by: {verdict.rule}{reason}"))
    if not verdict.allowed:
        typer.echo(f"reported as: {verdict.reported_as}")
    if verdict.rules:
        rows = [(one_line(one.rule), one.effect, one_line(one.outcome)) for one in verdict.rules]
        show("", table(("Rule", "Effect", "Matches"), rows))
