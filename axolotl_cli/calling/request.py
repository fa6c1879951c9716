"""One in-process request to a server: its arguments, answers to questions, and messages meanwhile."""

import json
import os
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

import typer

from axolotl_cli.calling.dialogue import Dialogue
from axolotl_cli.exit import ExitCode
from axolotl_cli.output import print_json
from axolotl_cli.runtime import with_host
from axolotl_cli.target import ChosenTarget
from axolotl_cli.text import one_line, report
from axolotl_cli.views.schemas import resolve, sample_of
from axolotl_core.errors import ConfigurationError
from axolotl_core.protocol.identity import Principal
from axolotl_core.protocol.messages import LOG_LEVEL_KEY
from axolotl_core.questions.question import Root
from axolotl_server.client.client import InProcessClient
from axolotl_server.client.outcomes import EVERYTHING, Answer, Inquiry, RemoteError, TaskCancelled, UnansweredQuestion
from axolotl_server.host import ServerHost
from axolotl_server.methods.lifecycle import TASKS_EXTENSION

_TEXT_ONLY: Final = {"additionalProperties": {"type": "string"}}


def read_arguments(words: Sequence[str], schema: Mapping[str, Any]) -> dict[str, Any]:
    """Parse JSON objects and `key=value` pairs; the schema tells which values are text."""
    arguments: dict[str, Any] = {}
    for word in map(as_text, words):
        for key, value in _read(word, schema):
            if key in arguments:
                raise ConfigurationError(f"The argument {key!r} is given twice")
            arguments[key] = value
    return arguments


def read_texts(words: Sequence[str]) -> dict[str, str]:
    """Parse the arguments of a prompt, which are all text; other values in JSON objects become JSON text."""
    arguments = read_arguments(words, _TEXT_ONLY)
    return {key: value if isinstance(value, str) else json.dumps(value) for key, value in arguments.items()}


def as_text(word: str) -> str:
    """Decode a word of the command line as UTF-8, whatever the locale is."""
    return os.fsencode(word).decode("utf-8", "replace")


def _read(word: str, schema: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    if word.lstrip().startswith("{"):
        yield from _read_object(word).items()
        return
    key, separator, value = word.partition("=")
    if not separator or not key:
        raise ConfigurationError(f"{word!r} is not an argument: write key=value or a JSON object")
    unnamed = schema.get("additionalProperties", {})
    yield key, _read_value(value, schema.get("properties", {}).get(key, unnamed), schema)


def _read_object(word: str) -> dict[str, Any]:
    try:
        value: dict[str, Any] = json.loads(word)
    except ValueError as error:
        raise ConfigurationError(f"The arguments are not a JSON object: {error}") from error
    return value


def _read_value(text: str, schema: Mapping[str, Any], root: Mapping[str, Any]) -> Any:
    if "string" in _types(schema, root):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


def _types(schema: Mapping[str, Any], root: Mapping[str, Any]) -> set[str]:
    """Collect the JSON types that a schema allows."""
    schema = resolve(schema, root)
    declared = schema.get("type", [])
    types = {declared} if isinstance(declared, str) else set(declared)
    for keyword in ("anyOf", "oneOf", "allOf"):
        for part in schema.get(keyword, ()):
            types |= _types(part, root)
    return types | {"string" for value in schema.get("enum", ()) if isinstance(value, str)}


_ACTIONS: Final = ("accept", "decline", "cancel")
_FORM: Final = "elicitation/create"
_SAMPLE: Final = "sampling/createMessage"


class CommandAnswers:
    """Answers questions with the values of `--answer`, and asks all others at the terminal."""

    def __init__(self, words: Sequence[str]) -> None:
        self._given = _read_words(words)
        self._used: dict[str, Mapping[str, Any]] = {}
        self._dialogue = Dialogue()

    @property
    def unused(self) -> list[str]:
        """The keys of answers to questions that were not asked."""
        return [key for key in self._given if key not in self._used]

    async def __call__(self, inquiry: Inquiry) -> Answer:
        key = inquiry.key
        if key in self._given:
            if self._used.get(key) == inquiry.params:
                raise ConfigurationError(f"The answer to {key!r} was not accepted; {_how_to_answer(inquiry)}")
            self._used[key] = inquiry.params
            return _read_answer(inquiry, self._given[key])
        if not sys.stdin.isatty():
            raise ConfigurationError(
                f"{_question(inquiry)} has no answer, and stdin is not a terminal; {_how_to_answer(inquiry)}"
            )
        return await self._dialogue.answer(inquiry)


def _read_words(words: Sequence[str]) -> dict[str, str]:
    given: dict[str, str] = {}
    for word in map(as_text, words):
        key, separator, text = word.partition("=")
        if not separator or not key:
            raise ConfigurationError(f"{word!r} is not an answer: write --answer key=JSON")
        if key in given:
            raise ConfigurationError(f"The answer to {key!r} is given twice")
        given[key] = text
    return given


def _read_answer(inquiry: Inquiry, text: str) -> Answer:
    try:
        value = json.loads(text)
    except ValueError:
        value = text
    if inquiry.method == _FORM and value in _ACTIONS:
        return {"action": value}
    if isinstance(value, dict):
        return value
    if inquiry.method == _SAMPLE:
        return value if isinstance(value, str) else text
    roots = value if isinstance(value, list) else [text]
    if inquiry.method == _FORM or not all(isinstance(root, str) for root in roots):
        raise ConfigurationError(f"The answer to {inquiry.key!r} is invalid; {_how_to_answer(inquiry)}")
    return [Root(root if "://" in root else Path(root).absolute().as_uri()) for root in roots]


def _question(inquiry: Inquiry) -> str:
    detail = {_FORM: f" ({inquiry.message})", _SAMPLE: " to a model"}.get(inquiry.method, " for directories")
    return f"The question {inquiry.key!r}{detail}"


def _how_to_answer(inquiry: Inquiry) -> str:
    if inquiry.method == _SAMPLE:
        return f"answer with --answer {inquiry.key}=TEXT"
    if inquiry.method != _FORM:
        return f"answer with --answer {inquiry.key}=DIRECTORY"
    schema = inquiry.params.get("requestedSchema")
    if schema is None:
        return f"answer with --answer {inquiry.key}=accept, or =decline"
    example = json.dumps(sample_of(schema), ensure_ascii=False)
    option = shlex.quote(f"{inquiry.key}={example}")
    return f"answer for example with --answer {option}, or with --answer {inquiry.key}=decline"


Prepare: TypeAlias = Callable[[ServerHost], Mapping[str, Any]]
"""Makes the params of a request, which may depend on the server."""

Show: TypeAlias = Callable[[Mapping[str, Any]], object]


def send_request(
    target: ChosenTarget,
    method: str,
    prepare: Prepare,
    answers: Sequence[str],
    show: Show | None,
    *,
    principal: Principal | None = None,
) -> Mapping[str, Any]:
    """Send a request and show its result, as JSON without `show`; print progress and log messages meanwhile.

    The caller is the principal, otherwise `stdio.principal`. If the server refuses the request, print its error and
    exit. Nothing is written to the audit logs, which belong to the server in production.
    """
    answering = CommandAnswers(answers)

    async def work(host: ServerHost) -> Any:
        params = {**prepare(host), "_meta": {LOG_LEVEL_KEY: "info"}}
        capabilities = _capabilities(host, params)
        caller = principal or host.settings.stdio.caller
        client = InProcessClient(host.handler, caller, answer=answering, capabilities=capabilities)
        try:
            result = await client.request(method, params, on_progress=_print_progress, on_log=_print_log)
            return await client.follow(result["taskId"]) if "taskId" in result else result
        except RemoteError as error:
            hint = await _hint(host, caller, method, params)
            if hint is not None:
                error.add_note(hint)
            raise
        finally:
            await client.close()

    try:
        result: Mapping[str, Any] = with_host(target, work, is_audited=False)
    except (TaskCancelled, UnansweredQuestion) as error:
        raise ConfigurationError(str(error)) from error
    except RemoteError as error:
        _print_refusal(error, as_json=show is None)
        raise typer.Exit(ExitCode.REFUSED) from None
    for key in answering.unused:
        typer.secho(f"The question {key!r} was not asked; its answer was not used", fg="yellow", err=True)
    (show or print_json)(result)
    return result


async def _hint(host: ServerHost, caller: Principal, method: str, params: Mapping[str, Any]) -> str | None:
    """Explain a refusal to the developer at the shell: other callers may not know that the feature exists."""
    from axolotl_cli.views.verdict import Verdict, explain_decision

    kind, key = {"tools/call": ("tool", "name"), "prompts/get": ("prompt", "name")}.get(method, ("resource", "uri"))
    verdict = await explain_decision(host, caller, kind, params[key])
    if not isinstance(verdict, Verdict) or verdict.allowed:
        return None
    return (
        f"The {kind} {verdict.name} exists, but the policy hides it from {caller.subject} (denied by: {verdict.rule}). "
        "Use --as SUBJECT with --role, --scope or --tenant, or set stdio.principal"
    )


def _capabilities(host: ServerHost, params: Mapping[str, Any]) -> Mapping[str, Any]:
    """Announce that all questions can be answered.

    A task reports nothing while it runs, so only tools that require it are run as one.
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


def _print_refusal(error: RemoteError, *, as_json: bool) -> None:
    if as_json:
        print_json({"error": {"code": error.code, "message": error.message, "data": error.data}})
    else:
        report(f"{error.message} ({error.code})")
    for hint in getattr(error, "__notes__", ()):
        typer.secho(one_line(hint), fg="yellow", err=True)
