"""One request to a container or a running server: its arguments, and answers to questions."""

import json
import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

import typer

from axolotl_cli.calling.dialogue import Dialogue
from axolotl_cli.calling.running_server import use_server
from axolotl_cli.exit import ExitCode
from axolotl_cli.options import Answers, AsJson, FileOptions, RemoteOptions, ToolSets
from axolotl_cli.output import print_json
from axolotl_cli.principal import ActingPrincipal
from axolotl_cli.runtime import with_host
from axolotl_cli.target import resolve_target
from axolotl_cli.text import one_line, report
from axolotl_cli.views.progress import CallProgress
from axolotl_cli.views.schemas import sample_of
from axolotl_cli.views.verdict import Verdict, explain_decision
from axolotl_core.errors import ConfigurationError
from axolotl_core.protocol.identity import Principal
from axolotl_core.protocol.messages import LOG_LEVEL_KEY
from axolotl_core.questions.question import Root
from axolotl_core.schema import resolve
from axolotl_server.client.client import Client, InProcessClient
from axolotl_server.client.replies import Answer, Question, RemoteError, TaskCancelled, UnansweredQuestion
from axolotl_server.host import ServerHost

_MAX_LISTED: Final = 20
_TEXT_ONLY: Final = {"additionalProperties": {"type": "string"}}
_FORM: Final = "elicitation/create"
_SAMPLE: Final = "sampling/createMessage"


def read_arguments(words: Sequence[str], schema: Mapping[str, Any]) -> dict[str, Any]:
    """Parse JSON objects and `key=value` pairs; the schema tells which values are text."""
    arguments: dict[str, Any] = {}
    for word in map(as_text, words):
        if word.lstrip().startswith("{"):
            try:
                given = json.loads(word)
            except ValueError as error:
                raise ConfigurationError(f"The arguments are not a JSON object: {error}") from error
        else:
            key, separator, text = word.partition("=")
            if not separator or not key:
                raise ConfigurationError(f"{word!r} is not an argument: write key=value or a JSON object")
            own = schema.get("properties", {}).get(key, schema.get("additionalProperties", {}))
            given = {key: text if "string" in _types(own, schema) else _json_or_text(text)}
        for key in given:
            if key in arguments:
                raise ConfigurationError(f"The argument {key!r} is given twice")
        arguments |= given
    return arguments


def read_texts(words: Sequence[str]) -> dict[str, str]:
    """Parse the arguments of a prompt, which are all text; other values in JSON objects become JSON text."""
    arguments = read_arguments(words, _TEXT_ONLY)
    return {key: value if isinstance(value, str) else json.dumps(value) for key, value in arguments.items()}


def as_text(word: str) -> str:
    """Decode a word of the command line as UTF-8, whatever the locale is."""
    return os.fsencode(word).decode("utf-8", "replace")


def _json_or_text(text: str) -> Any:
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


class CommandAnswers:
    """Answers questions with the values of `--answer`, and asks all others at the terminal."""

    def __init__(self, words: Sequence[str], progress: CallProgress) -> None:
        self._given: dict[str, str] = {}
        for word in map(as_text, words):
            key, separator, text = word.partition("=")
            if not separator or not key:
                raise ConfigurationError(f"{word!r} is not an answer: write --answer key=JSON")
            if key in self._given:
                raise ConfigurationError(f"The answer to {key!r} is given twice")
            self._given[key] = text
        self._progress = progress
        self._used: dict[str, Mapping[str, Any]] = {}
        self._dialogue = Dialogue()

    @property
    def unused(self) -> list[str]:
        """The keys of answers to questions that were not asked."""
        return [key for key in self._given if key not in self._used]

    async def __call__(self, question: Question) -> Answer:
        key = question.key
        if key in self._given:
            if self._used.get(key) == question.params:
                raise ConfigurationError(f"The answer to {key!r} was not accepted; {_how_to_answer(question)}")
            self._used[key] = question.params
            return _read_answer(question, self._given[key])
        if not sys.stdin.isatty():
            about = {_FORM: f" ({question.message})", _SAMPLE: " to a model"}.get(question.method, " for directories")
            raise ConfigurationError(
                f"The question {key!r}{about} has no answer, and stdin is not a terminal; {_how_to_answer(question)}"
            )
        with self._progress.paused():
            return await self._dialogue.answer(question)


def _read_answer(question: Question, text: str) -> Answer:
    value = _json_or_text(text)
    if question.method == _FORM and value in ("accept", "decline", "cancel"):
        return {"action": value}
    if isinstance(value, dict):
        return value
    if question.method == _SAMPLE:
        return value if isinstance(value, str) else text
    roots = value if isinstance(value, list) else [text]
    if question.method == _FORM or not all(isinstance(root, str) for root in roots):
        raise ConfigurationError(f"The answer to {question.key!r} is invalid; {_how_to_answer(question)}")
    return [Root(root if "://" in root else Path(root).absolute().as_uri()) for root in roots]


def _how_to_answer(question: Question) -> str:
    if question.method == _SAMPLE:
        return f"answer with --answer {question.key}=TEXT"
    if question.method != _FORM:
        return f"answer with --answer {question.key}=DIRECTORY"
    schema = question.params.get("requestedSchema")
    if schema is None:
        return f"answer with --answer {question.key}=accept, or =decline"
    example = json.dumps(sample_of(schema), ensure_ascii=False)
    option = shlex.quote(f"{question.key}={example}")
    return f"answer for example with --answer {option}, or with --answer {question.key}=decline"


class RequestOptions(NamedTuple):
    """The options of a request."""

    server: RemoteOptions
    principal: ActingPrincipal
    toolset: ToolSets
    files: FileOptions
    answer: Answers
    as_json: AsJson


@dataclass(slots=True)
class Sender:
    """Sends one request, to a container or to a running server.

    The caller of a container is the principal, otherwise `stdio.principal`. Nothing is written to its audit logs, which
    belong to the server in production.
    """

    context: typer.Context
    options: RequestOptions
    target: str = ""
    progress: CallProgress = field(default_factory=CallProgress)

    def split(self, missing: str, *words: str | None) -> list[str]:
        """Take the target from the words of the command line and return the others; with a URL, there is no target."""
        self.options.server.check(self.options.principal)
        given = [word for word in words if word is not None]
        is_remote = self.options.server.url is not None
        if not is_remote or given[:1] == ["-"]:
            if not given:
                self.context.fail("Missing argument 'TARGET'.")
            self.target, *given = given
        if not given:
            hint = ""
            if not is_remote and _is_not_target(self.target):
                command = f"axolotl {self.context.info_name} - {self.target}"
                hint = f" {self.target!r} was read as TARGET: for the target in the settings file, write {command}"
            self.context.fail(f"Missing argument '{missing}'.{hint}")
        return given

    def send(
        self,
        method: str,
        params: dict[str, Any],
        show: Callable[[Mapping[str, Any]], object],
        words: Sequence[str] = (),
    ) -> Mapping[str, Any]:
        """Send a request and show its result, or print it as JSON; show progress and log messages meanwhile.

        The words are arguments of a tool, whose schema tells what they mean. If the server refuses the request, print
        its error and exit.
        """
        answering = CommandAnswers(self.options.answer or (), self.progress)
        try:
            result = self._run(method, params, words, answering)
        except (TaskCancelled, UnansweredQuestion) as error:
            raise ConfigurationError(str(error)) from error
        except RemoteError as error:
            if error.message.startswith("Method not found"):  # the code alone may also mean an unknown tool
                error.add_note(f"The server has no {method.partition('/')[0]}. axolotl list shows what it has")
            if self.options.as_json:
                print_json({"error": {"code": error.code, "message": error.message, "data": error.data}})
            else:
                report(f"{error.message} ({error.code})")
            for hint in getattr(error, "__notes__", ()):
                typer.secho(one_line(hint), fg="yellow", err=True)
            raise typer.Exit(ExitCode.REFUSED) from None
        finally:
            self.progress.stop()
        for key in answering.unused:
            typer.secho(f"The question {key!r} was not asked; its answer was not used", fg="yellow", err=True)
        (print_json if self.options.as_json else show)(result)
        return result

    def _run(
        self, method: str, params: dict[str, Any], words: Sequence[str], answering: CommandAnswers
    ) -> Mapping[str, Any]:
        if self.options.server.url is not None:

            async def ask(client: Client) -> Mapping[str, Any]:
                if words:
                    listed = {tool["name"]: tool.get("inputSchema", {}) for tool in await client.list_tools()}
                    params["arguments"] = read_arguments(words, listed.get(params["name"], {}))
                return await self._converse(client, method, params)

            return use_server(self.options.server, ask, answering)

        async def work(host: ServerHost) -> Mapping[str, Any]:
            if words:
                binding = host.assembly.tools.find(params["name"])
                params["arguments"] = read_arguments(words, {} if binding is None else binding.spec.input_schema)
            caller = self.options.principal or host.settings.stdio.caller
            client = InProcessClient(host.handler, caller, answer=answering)
            try:
                return await self._converse(client, method, params)
            except RemoteError as error:
                hint = await _hint(host, caller, method, params, error.message)
                if hint is not None:
                    error.add_note(hint)
                raise
            finally:
                await client.close()

        chosen = resolve_target(self.target, self.options.toolset, files=self.options.files)
        if chosen.file.target is not None and _is_not_target(self.target):
            raise ConfigurationError(
                f"{self.target!r} is not a target: write - before it for the target in the settings file, as in "
                f"axolotl {self.context.info_name} - {self.target}"
            )
        return with_host(chosen, work, is_audited=False, user_code_only=True)

    async def _converse(self, client: Client, method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        params = {**params, "_meta": {LOG_LEVEL_KEY: "info"}}
        progress = self.progress
        result: Mapping[str, Any] = await client.run(method, params, on_progress=progress.report, on_log=progress.log)
        return result


def _is_not_target(word: str) -> bool:
    """Tell whether a word is surely no target but, for example, the name of a tool."""
    return word.isidentifier() and not Path(f"{word}.py").exists() and not Path(word).exists()


async def _hint(
    host: ServerHost, caller: Principal, method: str, params: Mapping[str, Any], refusal: str
) -> str | None:
    """Explain a refusal to the developer at the shell: other callers may not know that the feature exists."""
    kind, key = {"tools/call": ("tool", "name"), "prompts/get": ("prompt", "name")}.get(method, ("resource", "uri"))
    verdict = await explain_decision(host, caller, kind, params[key])
    if isinstance(verdict, Verdict):
        if verdict.allowed:
            return None
        return (
            f"The {kind} {verdict.name} exists, but the policy hides it from {caller.subject} (denied by: "
            f"{verdict.rule}). Use --as with another principal, or set stdio.principal"
        )
    if kind == "resource" or "not found: " not in refusal or "did you mean" in refusal:
        return None
    names = sorted(binding.spec.name for binding in host.bindings()[f"{kind}s"])
    if len(names) > _MAX_LISTED:
        return f"This server has {len(names)} {kind}s; axolotl list shows them"
    return f"This server has these {kind}s: {', '.join(names)}" if names else None
