"""`axolotl tasks`: the stored tasks of a server."""

import os
from collections.abc import Awaitable, Callable
from contextlib import ExitStack, closing
from typing import Annotated, Any, NoReturn, TypeVar

import typer

from axolotl_cli.exit import ExitCode
from axolotl_cli.options import AsJson, FileOptions
from axolotl_cli.output import print_json, table
from axolotl_cli.output import show as show_parts
from axolotl_cli.runtime import run
from axolotl_cli.target import resolve_target
from axolotl_cli.text import one_line
from axolotl_core.calls.cancellation import CancelReason
from axolotl_core.errors import ConfigurationError
from axolotl_core.protocol.identity import Principal
from axolotl_core.task_engine import ITaskEngine, TaskRecord, TasksUnavailable
from axolotl_server.audit.audit import make_audit
from axolotl_server.extensions.tasks.engines.assembly import make_database, make_engine
from axolotl_server.extensions.tasks.task_layers import cancellation
from axolotl_server.hosting.worker_settings import for_lone_process
from axolotl_server.settings.server import ServerSettings

T = TypeVar("T")

tasks = typer.Typer(name="tasks", no_args_is_help=True, help="Prepare the store of tasks; list, show and cancel tasks.")

_TaskId = Annotated[str, typer.Argument(metavar="ID", help="The ID of the task.")]


@tasks.command("prepare")
def prepare(files: FileOptions) -> None:
    """Create the tables of the store, or bring them up to date.

    Run it before the first start and after an update, as a database role that may create tables.
    """
    run(make_database(_loaded(files)).prepare())
    typer.echo("The store of tasks is ready.")


@tasks.command("list")
def list_tasks(
    *,
    count: Annotated[int, typer.Option(min=1, max=10_000, help="The maximum number of tasks to list.")] = 100,
    after: Annotated[int, typer.Option(min=0, help="List tasks after this number.")] = 0,
    files: FileOptions,
    as_json: AsJson = False,
) -> None:
    """List the tasks of all callers, oldest first."""
    records = _with_engine(_loaded(files), lambda engine: engine.of(None, after, count))
    if as_json:
        print_json([_described(record) for record in records])
        return
    if not records:
        typer.echo("No tasks.", err=True)
        return

    rows = ((one.id, str(one.number), one.status, one.created_at, one_line(one.tool)) for one in records)
    show_parts(table(("Task", "Number", "Status", "Created", "Tool"), rows))


@tasks.command("show")
def show(
    task_id: _TaskId,
    *,
    outcome: Annotated[bool, typer.Option("--outcome", help="Show the result too.")] = False,
    files: FileOptions,
    as_json: AsJson = False,
) -> None:
    """Show a task, without its arguments. The result is shown only with --outcome."""
    record = _with_engine(_loaded(files), lambda engine: engine.find(task_id, None))
    if record is None:
        _refuse(task_id)
    described = _described(record)
    if outcome and record.outcome is not None and record.outcome.result is not None:
        described["result"] = record.outcome.result.decode()
    if as_json:
        print_json(described)
        return
    for name, value in described.items():
        typer.echo(one_line(f"{name}: {value}"))


@tasks.command("cancel")
def cancel(task_id: _TaskId, *, files: FileOptions) -> None:
    """Cancel a task, wherever it runs."""
    loaded = _loaded(files)

    async def end(engine: ITaskEngine) -> TaskRecord | None:
        before = await engine.find(task_id, None)
        ended = await engine.cancel(task_id, None, CancelReason.OPERATOR)
        if before is not None and before.open and ended is not None and ended.status == "cancelled":
            _record(loaded, ended)
        return ended

    record = _with_engine(loaded, end)
    if record is None:
        _refuse(task_id)
    typer.echo(f"The task is {record.status}.")


def _record(settings: ServerSettings, task: TaskRecord) -> None:
    """Record who cancelled a task in an audit log of this process, because others write those of the servers."""
    with ExitStack() as slot:
        own = for_lone_process(settings, "operator", slot.callback).audit
        audit = make_audit(own.model_copy(update={"stderr": False}))
        if audit is None:
            return
        with closing(audit):
            try:
                audit.trail.open()
            except ConfigurationError as error:
                typer.echo(f"Warning: the cancellation is not in the audit log. {error}", err=True)
            else:
                audit.decisions.decided(cancellation(task, CancelReason.OPERATOR), Principal(_user()))


def _user() -> str:
    """Return the name of the user of this process, which its environment does not change."""
    from pwd import getpwuid  # not every system has it

    try:
        return getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def _described(record: TaskRecord) -> dict[str, Any]:
    described = {
        "id": record.id,
        "tool": record.tool,
        "status": record.status,
        "message": record.message,
        "created": record.created_at,
        "updated": record.updated_at,
        "runs": record.run,
        "questions": sorted(record.questions),
    }
    return {name: value for name, value in described.items() if value not in (None, [])}


def _refuse(task_id: str) -> NoReturn:
    typer.echo(f"Task {task_id!r} not found: it has expired or never existed", err=True)
    raise SystemExit(ExitCode.TOOL_FAILED)


def _loaded(files: FileOptions) -> ServerSettings:
    settings = resolve_target(None, None, None, files, is_required=False).settings
    if settings.tasks.url is None:
        raise ConfigurationError(
            'No task store is configured: set tasks.url in axolotl.toml, for example to "sqlite:///tasks.db"'
        )
    return settings


def _with_engine(settings: ServerSettings, work: Callable[[ITaskEngine], Awaitable[T]]) -> T:
    """Do some work with the engine that the settings choose; it runs no tasks.

    A store that cannot be used is reported like a wrong setting.
    """
    engine = make_engine(settings)

    async def do() -> T:
        await engine.open(_NoListener())
        try:
            return await work(engine)
        except TasksUnavailable as error:
            raise ConfigurationError(str(error)) from None
        finally:
            await engine.close()

    return run(do())


class _NoListener:
    """Follows no task."""

    def follows(self, task_id: str) -> bool:
        return False

    def hears(self, task_id: str) -> bool:
        return False

    def task_changed(self, change: object) -> None:
        """Ignore a change."""
