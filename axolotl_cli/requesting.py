"""One request through the real pipeline, without a wire, for the commands that make one."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import typer

from axolotl_cli.answers import CommandAnswers
from axolotl_cli.codes import ExitCode
from axolotl_cli.failures import report
from axolotl_cli.lines import one_line
from axolotl_cli.render import print_json
from axolotl_cli.running import with_host
from axolotl_cli.targets import Choice
from axolotl_core.errors import ConfigurationError
from axolotl_core.protocol.messages import LOG_LEVEL_KEY
from axolotl_server.capabilities import TASKS_EXTENSION
from axolotl_server.client import InProcessClient, RemoteError, TaskCancelled, UnansweredQuestion
from axolotl_server.client_answers import EVERYTHING
from axolotl_server.host import ServerHost

__all__ = ["Prepare", "request"]

Prepare: TypeAlias = Callable[[ServerHost], Mapping[str, Any]]
"""Makes the params of a request, which may need to know the server."""


def request(choice: Choice, method: str, prepare: Prepare, answers: Sequence[str], *, as_json: bool) -> Any:
    """Make a request and give its result; what goes on meanwhile is told on the error stream.

    Raises:
        ConfigurationError: if the server cannot start, or a question of it has no answer.
        typer.Exit: if the server refuses, after saying why.
    """
    answering = CommandAnswers(answers)

    async def work(host: ServerHost) -> Any:
        params = {**prepare(host), "_meta": {LOG_LEVEL_KEY: "info"}}
        capabilities = _capabilities(host, params)
        client = InProcessClient(host.handler, host.settings.stdio.caller, answer=answering, capabilities=capabilities)
        try:
            result = await client.request(method, params, on_progress=_print_progress, on_log=_print_log)
            return await client.follow(result["taskId"]) if "taskId" in result else result
        finally:
            await client.close()

    try:
        result = with_host(choice, work)
    except (TaskCancelled, UnansweredQuestion) as error:
        raise ConfigurationError(str(error)) from error
    except RemoteError as error:
        _print_refusal(error, as_json)
        raise typer.Exit(ExitCode.REFUSED) from None
    for key in answering.unused:
        typer.secho(f"The answer for {key!r} was not asked for", fg="yellow", err=True)
    return result


def _capabilities(host: ServerHost, params: Mapping[str, Any]) -> Mapping[str, Any]:
    """Say that whatever is asked can be answered.

    A task tells nothing while it runs, so that only tools that cannot do without are run as one.
    """
    bindings = (one.spec for one in host.catalogue.bindings() if one.spec.tool.task_support == "required")
    if any(spec.name.casefold() == str(params.get("name")).casefold() for spec in bindings):
        return {**EVERYTHING, "extensions": {TASKS_EXTENSION: {}}}
    return EVERYTHING


def _print_progress(params: Mapping[str, Any]) -> None:
    total = f"/{params['total']:g}" if "total" in params else ""
    message = f" {one_line(params['message'])}" if "message" in params else ""
    typer.secho(f"… {params['progress']:g}{total}{message}", dim=True, err=True)


def _print_log(params: Mapping[str, Any]) -> None:
    data, logger = params["data"], f" {params['logger']}" if "logger" in params else ""
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    typer.secho(one_line(f"{params['level']}{logger}: {text}"), dim=True, err=True)


def _print_refusal(error: RemoteError, as_json: bool) -> None:
    if as_json:
        print_json({"error": {"code": error.code, "message": error.message, "data": error.data}})
    else:
        report(f"{error.message} ({error.code})")
