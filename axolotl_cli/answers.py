"""Answers to what a server asks a command: given on the command line, or entered at the terminal."""

import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from axolotl_cli.arguments import as_text
from axolotl_cli.dialogue import Dialogue
from axolotl_cli.samples import sample_of
from axolotl_core.errors import ConfigurationError
from axolotl_core.roots import Root
from axolotl_server.client import Answer, Inquiry

__all__ = ["CommandAnswers"]

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
