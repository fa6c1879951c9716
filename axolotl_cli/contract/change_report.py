"""Reports about the changes of a contract: a table for people, and JSON."""

from typing import Final

import msgspec
import typer

from axolotl_cli.exit import ExitCode
from axolotl_cli.output import show, table
from axolotl_cli.text import number, one_line
from axolotl_core.contract.changes import ContractChange, Impact
from axolotl_core.contract.lock import Lock
from axolotl_core.contract.lock_diff import compare_locks

_MAX_EVIDENCE: Final = 60


class Summary(msgspec.Struct, frozen=True):
    """How many changes there are."""

    breaking: int
    risky: int
    compatible: int
    undecided: int
    """How many of the risky ones could not be decided."""


class ContractReport(msgspec.Struct, frozen=True):
    """The output of `contract diff` and `contract check` as JSON."""

    against: str
    """What the code was compared with."""
    digest: str
    """The digest of the contract of the code."""
    stale: bool
    """Whether the lock file differs from the code; only `contract check` looks."""
    summary: Summary
    changes: list[ContractChange]

    @property
    def code(self) -> ExitCode:
        """The exit code of `contract diff`."""
        if self.summary.breaking:
            return ExitCode.BREAKING
        return ExitCode.RISKY if self.summary.risky else ExitCode.DONE


def compare(source: str, old: Lock, code: Lock, *, is_stale: bool = False) -> ContractReport:
    """Compare the code with the contract of a source."""
    changes = list(compare_locks(old, code))
    counts = {impact.value: sum(one.impact is impact for one in changes) for impact in Impact}
    summary = Summary(**counts, undecided=sum(one.undecided for one in changes))
    return ContractReport(source, code.digest, is_stale, summary, changes)


def print_changes(report: ContractReport) -> None:
    """Print the changes as a table, the worst first."""
    if report.changes:
        columns = ("Class", "Feature", "Place", "Change", "Evidence")
        show(table(columns, map(_row, report.changes)), "")
    summary = report.summary
    counts = {f"{impact} change": getattr(summary, impact) for impact in Impact}
    found = ", ".join(number(count, kind) for kind, count in counts.items() if count) or "no changes"
    undecided = f" ({summary.undecided} undecided)" if summary.undecided else ""
    typer.echo(one_line(f"{found}{undecided} against {report.against}"))


def _row(change: ContractChange) -> tuple[str, ...]:
    impact = f"{change.impact}, undecided" if change.undecided else str(change.impact)
    evidence = "–" if change.evidence is None else msgspec.json.encode(change.evidence, order="sorted").decode()
    return (
        impact,
        one_line(f"{change.kind.removesuffix('s')} {change.feature}"),
        one_line(change.pointer or "–"),
        one_line(change.message),
        one_line(evidence if len(evidence) <= _MAX_EVIDENCE else f"{evidence[:_MAX_EVIDENCE]}…"),
    )
