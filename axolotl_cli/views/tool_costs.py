"""The cost of tools for a model: bytes and tokens of what it sees, per tool, tool set and server."""

import msgspec
import typer

from axolotl_cli.output import show, table
from axolotl_cli.text import number, one_line
from axolotl_core.protocol.identity import Principal
from axolotl_core.protocol.versions import LATEST_STATELESS_REVISION
from axolotl_core.protocol.wire import encode
from axolotl_server.host import ServerHost
from axolotl_server.protocol.eras.presentation import tool_definition

_BYTES_PER_TOKEN = 4


class Cost(msgspec.Struct, frozen=True):
    """What some tools cost. Output schemas are counted separately, because few clients give them to models."""

    name: str
    """The name of a tool or tool set; empty for all tools, and for tools outside of any set."""
    toolset: str | None
    tools: int
    bytes: int
    tokens: int
    output_bytes: int
    output_tokens: int


class BudgetReport(msgspec.Struct, frozen=True):
    """The output of `axolotl budget` as JSON."""

    max_tokens: int | None
    total: Cost
    toolsets: list[Cost]
    tools: list[Cost]


async def make_report(host: ServerHost, principal: Principal | None, max_tokens: int | None) -> BudgetReport:
    """Count the tools that a principal sees; without a principal, all of them."""
    specs = [binding.spec for binding in host.assembly.tools.bindings()]
    if principal is not None and host.assembly.tools.authorization is not None:
        allowed = await host.assembly.tools.authorization.allowed(principal, specs)
        specs = [spec for spec, is_allowed in zip(specs, allowed, strict=True) if is_allowed]
    costs = []
    for spec in specs:  # as a client of the latest revision receives them, in compact JSON; tokens are estimated
        definition = msgspec.to_builtins(tool_definition(spec, LATEST_STATELESS_REVISION))
        seen = len(encode({key: definition[key] for key in ("name", "description", "inputSchema")}))
        output = len(encode(definition["outputSchema"])) if "outputSchema" in definition else 0
        tokens, output_tokens = (-(-size // _BYTES_PER_TOKEN) for size in (seen, output))
        costs.append(Cost(spec.name, spec.toolset, 1, seen, tokens, output, output_tokens))
    costs.sort(key=lambda cost: (-cost.bytes, cost.name))
    sets = dict.fromkeys(cost.toolset for cost in costs)
    toolsets = [_total(name, [cost for cost in costs if cost.toolset == name]) for name in sets]
    return BudgetReport(max_tokens, _total(None, costs), sorted(toolsets, key=lambda cost: -cost.bytes), costs)


def _total(toolset: str | None, costs: list[Cost]) -> Cost:
    fields = ("tools", "bytes", "tokens", "output_bytes", "output_tokens")
    return Cost(toolset or "", toolset, *(sum(getattr(cost, field) for cost in costs) for field in fields))


def print_report(report: BudgetReport) -> None:
    """Print the costs of tools, tool sets and the server."""
    columns = ("Bytes", "Tokens", "Output bytes", "Output tokens")
    rows = [(one_line(one.name), one.toolset or "–", *_numbers(one)) for one in report.tools]
    show(table(("Tool", "Tool set", *columns), rows), "")
    if any(one.name for one in report.toolsets):
        rows = [(one.name or "–", str(one.tools), *_numbers(one)) for one in report.toolsets]
        show(table(("Tool set", "Tools", *columns), rows), "")
    limit = "" if report.max_tokens is None else f", at most {report.max_tokens:,} allowed"
    total = report.total
    typer.echo(
        f"{number(total.tools, 'tool')}: {total.bytes:,} bytes, about {total.tokens:,} tokens{limit} "
        "(UTF-8 bytes / 4, rounded up for each tool)"
    )


def _numbers(cost: Cost) -> tuple[str, ...]:
    values = (cost.bytes, cost.tokens, cost.output_bytes, cost.output_tokens)
    return tuple(f"{value:,}" if value else "–" for value in values)
