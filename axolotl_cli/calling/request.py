"""One request through the real pipeline, without a wire, for the commands that make one."""

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
from axolotl_core.protocol.messages import LOG_LEVEL_KEY
from axolotl_core.questions.question import Root
from axolotl_server.client.client import InProcessClient
from axolotl_server.client.outcomes import EVERYTHING, Answer, Inquiry, RemoteError, TaskCancelled, UnansweredQuestion
from axolotl_server.host import ServerHost
from axolotl_server.methods.lifecycle import TASKS_EXTENSION

_TEXTS: Final = {"additionalProperties": {"type": "string"}}


def read_arguments(words: Sequence[str], schema: Mapping[str, Any]) -> dict[str, Any]:
    """Read JSON objects and `key=value` pairs; the schema says which values are text.

    Raises:
        ConfigurationError: if a word is neither, or a key is given twice.
    """
    arguments: dict[str, Any] = {}
    for word in map(as_text, words):
        for key, value in _read(word, schema):
            if key in arguments:
                raise ConfigurationError(f"The argument {key!r} is given twice")
            arguments[key] = value
    return arguments


def read_texts(words: Sequence[str]) -> dict[str, str]:
    """Read the same words as texts, which is all that a prompt takes; values of JSON objects are written as JSON.

    Raises:
        ConfigurationError: if a word is neither, or a key is given twice.
    """
    arguments = read_arguments(words, _TEXTS)
    return {key: value if isinstance(value, str) else json.dumps(value) for key, value in arguments.items()}


def as_text(word: str) -> str:
    """Read a word of the command line as UTF-8, whatever the locale made of it."""
    return os.fsencode(word).decode("utf-8", "replace")


def _read(word: str, schema: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    if word.lstrip().startswith("{"):
        yield from _read_object(word).items()
        return
    key, separator, value = word.partition("=")
    if not separator or not key:
        raise ConfigurationError(f"{word!r} is no argument: write key=value, or a JSON object")
    unnamed = schema.get("additionalProperties", {})
    yield key, _read_value(value, schema.get("properties", {}).get(key, unnamed), schema)


def _read_object(word: str) -> dict[str, Any]:
    try:
        value: dict[str, Any] = json.loads(word)
    except ValueError as error:
        raise ConfigurationError(f"The arguments are no JSON object: {error}") from error
    return value


def _read_value(text: str, schema: Mapping[str, Any], root: Mapping[str, Any]) -> Any:
    if "string" in _types(schema, root):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


def _types(schema: Mapping[str, Any], root: Mapping[str, Any]) -> set[str]:
    """Collect the JSON types that a schema admits."""
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
    """Answers each question with what `--answer` says, else by asking the person at the terminal.

    Raises:
        ConfigurationError: if a word is no answer, or a key is given twice.
    """

    def __init__(self, words: Sequence[str]) -> None:
        self._given = _read_words(words)
        self._used: dict[str, Mapping[str, Any]] = {}
        self._dialogue = Dialogue()

    @property
    def unused(self) -> list[str]:
        """The keys of answers that nobody asked for."""
        return [key for key in self._given if key not in self._used]

    async def __call__(self, inquiry: Inquiry) -> Answer:
        """Answer a question.

        Raises:
            ConfigurationError: if there is no answer, or one that is not accepted.
        """
        key = inquiry.key
        if key in self._given:
            if self._used.get(key) == inquiry.params:
                raise ConfigurationError(f"The answer for {key!r} is not accepted; {_how_to_answer(inquiry)}")
            self._used[key] = inquiry.params
            return _read_answer(inquiry, self._given[key])
        if not sys.stdin.isatty():
            raise ConfigurationError(
                f"{_question(inquiry)} has no answer, and the input is no terminal to ask at; {_how_to_answer(inquiry)}"
            )
        return await self._dialogue.answer(inquiry)


def _read_words(words: Sequence[str]) -> dict[str, str]:
    given: dict[str, str] = {}
    for word in map(as_text, words):
        key, separator, text = word.partition("=")
        if not separator or not key:
            raise ConfigurationError(f"{word!r} is no answer: write --answer key=JSON")
        if key in given:
            raise ConfigurationError(f"The answer for {key!r} is given twice")
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
    places = value if isinstance(value, list) else [text]
    if inquiry.method == _FORM or not all(isinstance(place, str) for place in places):
        raise ConfigurationError(f"The answer for {inquiry.key!r} cannot be read; {_how_to_answer(inquiry)}")
    return [Root(place if "://" in place else Path(place).absolute().as_uri()) for place in places]


def _question(inquiry: Inquiry) -> str:
    what = {_FORM: f" ({inquiry.message})", _SAMPLE: " to a model"}.get(inquiry.method, " for directories")
    return f"The question {inquiry.key!r}{what}"


def _how_to_answer(inquiry: Inquiry) -> str:
    if inquiry.method == _SAMPLE:
        return f"answer with --answer {inquiry.key}=TEXT"
    if inquiry.method != _FORM:
        return f"answer with --answer {inquiry.key}=DIRECTORY"
    schema = inquiry.params.get("requestedSchema")
    if schema is None:
        return f"answer with --answer {inquiry.key}=accept, or =decline"
    example = json.dumps(sample_of(schema), ensure_ascii=False)
    return f"answer as in --answer {shlex.quote(f'{inquiry.key}={example}')}, or with --answer {inquiry.key}=decline"


Prepare: TypeAlias = Callable[[ServerHost], Mapping[str, Any]]
"""Makes the params of a request, which may depend on the server."""

Show: TypeAlias = Callable[[Mapping[str, Any]], object]


def send_request(
    chosen: ChosenTarget, method: str, prepare: Prepare, answers: Sequence[str], show: Show | None
) -> Mapping[str, Any]:
    """Send a request and show its result, as JSON without `show`; print progress and log messages meanwhile.

    If the server refuses the request, print its error and exit.
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
        result: Mapping[str, Any] = with_host(chosen, work)
    except (TaskCancelled, UnansweredQuestion) as error:
        raise ConfigurationError(str(error)) from error
    except RemoteError as error:
        _print_refusal(error, as_json=show is None)
        raise typer.Exit(ExitCode.REFUSED) from None
    for key in answering.unused:
        typer.secho(f"The answer for {key!r} was not asked for", fg="yellow", err=True)
    (show or print_json)(result)
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


def _print_refusal(error: RemoteError, *, as_json: bool) -> None:
    if as_json:
        print_json({"error": {"code": error.code, "message": error.message, "data": error.data}})
    else:
        report(f"{error.message} ({error.code})")
