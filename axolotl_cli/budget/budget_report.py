"""The report of `axolotl budget`."""

from collections.abc import Sequence
from typing import Any

import msgspec
import typer

from axolotl_cli.budget.advice import Advice, advice_for
from axolotl_cli.budget.cost import Cost, ToolCost, by_toolset, cost_of, definition_of, total
from axolotl_cli.budget.tokens import TokenMethod
from axolotl_cli.output import show, table
from axolotl_cli.text import number, one_line
from axolotl_core.protocol.identity import Principal
from axolotl_server.host import ServerHost

_SHOWN_ADVICE = 10


class BudgetReport(msgspec.Struct, frozen=True):
    """What the tools of a server cost a model."""

    method: str
    """How tokens were counted."""
    max_tokens: int | None
    total: Cost
    toolsets: dict[str, Cost]
    tools: Sequence[ToolCost]
    advice: Sequence[Advice]

    @property
    def is_over(self) -> bool:
        """Whether the tools cost more than allowed."""
        return self.max_tokens is not None and self.total.tokens > self.max_tokens


async def make_report(
    host: ServerHost, principal: Principal | None, method: TokenMethod, max_tokens: int | None
) -> BudgetReport:
    """Count the tools that a principal sees; without a principal, all of them."""
    bindings = host.catalogue.bindings()
    authorization = host.catalogue.authorization
    policy = None if authorization is None else authorization.policy
    specs = [binding.spec for binding in bindings]
    unreachable = set() if policy is None else {id(spec) for spec in policy.unreachable(specs)}
    if principal is not None and authorization is not None:
        allowed = await authorization.allowed(principal, specs)
        specs = [spec for spec, is_allowed in zip(specs, allowed, strict=True) if is_allowed]
    described = [(definition_of(spec), spec) for spec in specs]
    costs = [cost_of(definition, spec.toolset, method) for definition, spec in described]
    costs.sort(key=lambda cost: (-cost.bytes, cost.name))
    found = [
        one
        for definition, spec in described
        for one in advice_for(definition, is_reachable=id(spec) not in unreachable)
    ]
    found.sort(key=lambda one: -one.saved_bytes)
    sets = {name or "": cost for name, cost in by_toolset(costs).items()}
    return BudgetReport(method.name, max_tokens, total(costs), sets, costs, found)


def print_report(report: BudgetReport) -> None:
    """Print the costs of tools, tool sets and the server, and what would make them cheaper."""
    columns = ("Tool", "Tool set", "Bytes", "Tokens", "Output bytes", "Output tokens")
    show(table(columns, [(one_line(cost.name), cost.toolset or "–", *_numbers(cost)) for cost in report.tools]), "")
    if report.toolsets.keys() != {""}:
        columns = ("Tool set", "Tools", "Bytes", "Tokens", "Output bytes", "Output tokens")
        rows = [(name or "–", str(cost.tools), *_numbers(cost)) for name, cost in report.toolsets.items()]
        show(table(columns, rows), "")
    if report.advice:
        rows = [(f"{one.saved_bytes:,}", one_line(_place(one)), one_line(one.message)) for one in report.advice]
        show(table(("Saves", "Where", "Advice"), rows[:_SHOWN_ADVICE]), "")
        if len(rows) > _SHOWN_ADVICE:
            typer.echo(f"{number(len(rows) - _SHOWN_ADVICE, 'more suggestion')}: --format json lists all\n")
    limit = "" if report.max_tokens is None else f", at most {report.max_tokens:,} allowed"
    typer.echo(
        f"{number(report.total.tools, 'tool')}: {report.total.bytes:,} bytes, {report.total.tokens:,} tokens{limit} "
        f"({report.method})"
    )


def _place(advice: Advice) -> str:
    return f"{advice.tool} {advice.place}".rstrip()


def _numbers(cost: Cost | ToolCost) -> tuple[str, ...]:
    values = (cost.bytes, cost.tokens, cost.output_bytes, cost.output_tokens)
    return tuple(f"{value:,}" if value else "–" for value in values)


def as_json(report: BudgetReport) -> Any:
    """Return the report as plain JSON values."""
    return msgspec.to_builtins(report)
