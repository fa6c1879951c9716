"""The comparison with the official SDK and FastMCP on the first page."""

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tests.support.docs.pages import ROOT
from tests.support.docs.tables import table

_PROJECTS: Final = ("axolotl", "mcp", "fastmcp")


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the table; `notes` say more than yes or no about a project, as long as the result stays the same."""

    title: str
    trial: str
    yes: str = "yes"
    no: str = "no"
    notes: Mapping[tuple[str, bool], str] = field(default_factory=dict)

    def cell(self, project: str, result: bool) -> str:
        """Describe the result of a trial."""
        return self.notes.get((project, result), self.yes if result else self.no)


ROWS: Final = (
    Row("all five protocol revisions at one endpoint", "all revisions"),
    Row("verification of OAuth tokens", "token verification"),
    Row(
        "authorization per tool",
        "authorization",
        notes={("axolotl", True): "yes, by rules in the settings", ("fastmcp", True): "yes, by checks in code"},
    ),
    Row("OpenTelemetry", "telemetry"),
    Row(
        "dependency injection",
        "injection",
        no="a lifespan object",
        notes={("axolotl", True): "a container", ("fastmcp", True): "`Depends`"},
    ),
    Row(
        "deadlines",
        "deadlines",
        notes={("axolotl", True): "for every call, enforced", ("fastmcp", True): "per tool, off by default"},
    ),
    Row("concurrency limits", "concurrency limits", notes={("axolotl", True): "per tool, tool set and server"}),
    Row(
        "rate limits",
        "rate limits",
        notes={("axolotl", True): "per user, tenant and tool; shared in Redis", ("fastmcp", True): "as middleware"},
    ),
    Row("retries", "retries", notes={("axolotl", True): "per tool", ("fastmcp", True): "as middleware"}),
    Row("idempotency, circuit breakers", "idempotency and breakers"),
    Row(
        "human approval, enforced by the server",
        "approval",
        notes={("fastmcp", False): "no; an app lets the model ask"},
    ),
    Row("tamper-evident audit log", "audit"),
    Row(
        "asking the user in the tool's code, in `2026-07-28`",
        "asks in the body",
        notes={
            ("axolotl", True): "`await context.ask(…)`",
            ("mcp", False): "before the code runs",
            ("fastmcp", False): "by returning the question",
        },
    ),
    Row(
        '`"1"` for an integer',
        "strict types",
        yes="refused",
        no="converted",
    ),
    Row("unknown arguments", "unknown refused", yes="refused", no="ignored"),
    Row(
        "texts of unexpected exceptions",
        "exceptions hidden",
        yes="hidden",
        no="sent to the client",
    ),
    Row(
        "DNS rebinding (foreign `Host` or `Origin`)",
        "rebinding refused",
        yes="refused",
        no="accepted",
    ),
    Row("case of tool names", "any case", yes="ignored", no="matters"),
    Row("a client library", "client", notes={("axolotl", True): "for tests and scripts"}),
    Row("OpenAPI import, server composition", "composition"),
    Row("cached responses", "response caching", notes={("fastmcp", True): "as middleware"}),
)


def try_projects() -> dict[str, Any]:
    """Try all projects in a separate process."""
    command = [sys.executable, "-m", "tests.support.docs.peers"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, timeout=120, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def comparison_table(found: Mapping[str, Any]) -> str:
    """Build the table from the results of the trials."""
    versions = found["versions"]
    columns = ("", "Axolotl", f"`mcp` {versions['mcp']} (official SDK)", f"FastMCP {versions['fastmcp']}")
    return table(
        columns,
        [(row.title, *(row.cell(project, found[project][row.trial]) for project in _PROJECTS)) for row in ROWS],
    )
