"""`axolotl contract`: a lock file with everything that callers rely on, and changes against it."""

from pathlib import Path
from typing import Annotated, Final

import typer

from axolotl_cli.contract.change_report import ContractReport, compare, print_changes
from axolotl_cli.contract.sources import freeze_code, read_baseline
from axolotl_cli.exit import ExitCode
from axolotl_cli.options import AsJson, FileOptions, Target, ToolSets
from axolotl_cli.output import print_json
from axolotl_cli.target import resolve_target
from axolotl_cli.text import counted
from axolotl_cli.text import report as report_problem
from axolotl_core.contract.lock import LOCK_FILE
from axolotl_core.errors import ConfigurationError

contract = typer.Typer(
    name="contract", no_args_is_help=True, help="Freeze what callers rely on, and find changes that break them."
)

TokenName = Annotated[
    str | None,
    typer.Option("--token-env", metavar="NAME", help="URL: the environment variable with the token to send."),
]
_SOURCE: Final = "a lock file, git:REV for the lock file of a revision, or the URL of a server"


@contract.command("freeze")
def freeze(
    target: Target = None,
    *,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="The file to write. Defaults to axolotl.lock.json in the project."
        ),
    ] = None,
    toolset: ToolSets = None,
    files: FileOptions,
) -> None:
    """Write everything that callers rely on to a lock file: names, descriptions, schemas, scopes and limits.

    The file is sorted, so that only changes of the contract change it.
    """
    here = Path.cwd()
    chosen = resolve_target(target, toolset, files=files)
    path = Path(LOCK_FILE) if output is None else here / output
    lock = freeze_code(chosen)
    changed = _write(path, lock.text)
    counts = {kind.removesuffix("s"): len(entries) for kind, entries in lock.kinds.items()}
    typer.echo(f"{path}: {', '.join(counted(counts))}, {'written' if changed else 'unchanged'}")
    typer.echo(lock.digest)


def _write(path: Path, text: str) -> bool:
    """Write a file unless it has this content; return whether it was written."""
    data = text.encode()
    try:
        if path.is_file() and path.read_bytes() == data:
            return False
        path.write_bytes(data)
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be written: {error.strerror}") from None
    return True


@contract.command("diff")
def diff(
    target: Target = None,
    *,
    against: Annotated[
        str | None,
        typer.Option("--against", metavar="SOURCE", help=f"Compare with {_SOURCE}. Defaults to axolotl.lock.json."),
    ] = None,
    token_env: TokenName = None,
    as_json: AsJson = False,
    toolset: ToolSets = None,
    files: FileOptions,
) -> None:
    """Compare the code with a contract, and classify each change as breaking, risky or compatible.

    The exit code is 1 if a change is breaking, 4 if one is risky and none is breaking.
    It is 2 if a contract cannot be read.
    """
    here = Path.cwd()
    chosen = resolve_target(target, toolset, files=files)
    source = against or LOCK_FILE
    old = read_baseline(source, Path.cwd() if against is None else here, token_env)
    report = compare(source, old.select(chosen.toolsets), freeze_code(chosen))
    _print(report, as_json)
    raise typer.Exit(report.code)


@contract.command("check")
def check(
    target: Target = None,
    *,
    base: Annotated[
        str | None,
        typer.Option("--base", metavar="SOURCE", help=f"Also compare with {_SOURCE}; usually git:origin/main."),
    ] = None,
    allow_risky: Annotated[
        bool, typer.Option("--allow-risky", help="Accept risky changes, except those that could not be decided.")
    ] = False,
    token_env: TokenName = None,
    as_json: AsJson = False,
    toolset: ToolSets = None,
    files: FileOptions,
) -> None:
    """Check in continuous integration that the lock file is up to date, and that nothing breaks callers of the base.

    The exit code is 1 if the lock file is out of date, or a change is breaking or undecided.
    It is 4 if changes are risky, and 2 if a contract cannot be read.
    """
    here = Path.cwd()
    chosen = resolve_target(target, toolset, files=files)
    lock = read_baseline(LOCK_FILE, Path.cwd()).select(chosen.toolsets)
    old = lock if base is None else read_baseline(base, here, token_env).select(chosen.toolsets)
    code = freeze_code(chosen)
    report = compare(base or LOCK_FILE, old, code, is_stale=lock.digest != code.digest)
    _print(report, as_json)
    if report.stale:
        report_problem(f"{LOCK_FILE} differs from the code: run axolotl contract freeze, and review what changes in it")
    if report.stale or report.summary.undecided:
        raise typer.Exit(ExitCode.BREAKING)
    is_accepted = allow_risky and report.code is ExitCode.RISKY
    raise typer.Exit(ExitCode.DONE if is_accepted else report.code)


def _print(report: ContractReport, as_json: bool) -> None:
    if as_json:
        print_json(report)
    else:
        print_changes(report)
