"""The abstract prompt: a message, or several, that a user picks by name."""

import inspect
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Final, Generic, Literal, TypeAlias, TypeVar

import msgspec
from pydantic import BaseModel

from axolotl_core.completable import ICompletable
from axolotl_core.content import ContentBlock, TextContent
from axolotl_core.context import ToolContext
from axolotl_core.errors import ConfigurationError
from axolotl_core.feature import check_name_of
from axolotl_core.output import BLOCKS
from axolotl_core.text_arguments import check_textual
from axolotl_core.type_arguments import open_parameters, type_arguments

__all__ = ["ArgumentsT", "IPrompt", "PromptMessage", "PromptOutput", "PromptResult", "check_prompt", "prompt_result"]

ArgumentsT = TypeVar("ArgumentsT")
_ROLES: Final = ("user", "assistant")

_SINGLE: Final = (str, bytes, bytearray, memoryview)
"""Sequences that are one thing, right or wrong, and not several."""


class PromptMessage(msgspec.Struct, frozen=True):
    """One message of a prompt: who says it, and what."""

    role: Literal["user", "assistant"]
    content: ContentBlock


class PromptResult(msgspec.Struct, frozen=True):
    """A whole answer, for prompts that decide about every part of it."""

    messages: Sequence[PromptMessage]
    description: str | None = None
    meta: Mapping[str, Any] | None = None


_Part: TypeAlias = str | ContentBlock | PromptMessage
PromptOutput: TypeAlias = _Part | Sequence[_Part] | PromptResult
"""What a prompt may give: text and content blocks become messages of the user."""


class IPrompt(ICompletable, Generic[ArgumentsT]):
    """A typed prompt: `class Review(IPrompt[ReviewArguments])` with a name, a description and `render`.

    Its arguments are a pydantic model (`NoArguments` for none); they arrive as text and are converted, so that its
    fields may be of type str, int, float, bool, a date, a Literal or an Enum.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        models = type_arguments(cls, IPrompt)
        if models is not None:
            (cls.input_model,) = models
        elif not hasattr(cls, "input_model") and "render" in cls.__dict__ and not open_parameters(cls):
            raise TypeError(f"Say which arguments {cls.__name__} takes: class {cls.__name__}(IPrompt[Arguments])")

    @abstractmethod
    async def render(self, arguments: ArgumentsT, context: ToolContext) -> PromptOutput:
        """Write the messages.

        Raises:
            ToolError: to tell the caller what went wrong; any other exception is logged and hidden from it.
        """

    async def execute(self, arguments: Any, context: ToolContext) -> PromptResult:
        """Render, and bring whatever comes into one form."""
        return prompt_result(await self.render(arguments, context))


def prompt_result(output: Any) -> PromptResult:
    """Make messages of what a prompt gave.

    Raises:
        TypeError: if it gave something that is no message.
    """
    if isinstance(output, PromptResult):
        return msgspec.structs.replace(output, messages=tuple(map(_message, output.messages)))
    parts = output if isinstance(output, Sequence) and not isinstance(output, _SINGLE) else (output,)
    return PromptResult(tuple(map(_message, parts)))


def check_prompt(prompt: Any) -> None:
    """Look at a prompt before it is registered.

    Raises:
        ConfigurationError: if something is missing; the text says what to write.
    """
    kind = type(prompt).__name__
    if not isinstance(prompt, IPrompt):
        hint = "register an instance, not the class" if inspect.isclass(prompt) else "subclass IPrompt or use @prompt"
        raise ConfigurationError(f"{prompt!r} is not a prompt: {hint}")
    check_name_of(prompt)
    model = getattr(prompt, "input_model", None)
    derived = prompt.argument_parser.__func__ is ICompletable.argument_parser  # type: ignore[attr-defined]
    if derived and not (inspect.isclass(model) and issubclass(model, BaseModel)):
        raise ConfigurationError(f"{kind} has no arguments model: write class {kind}(IPrompt[Arguments])")
    check_textual(f"Prompt {prompt.name!r}", prompt.arguments_schema)


def _message(part: Any) -> PromptMessage:
    if isinstance(part, PromptMessage):
        return _checked(part)
    if isinstance(part, str):
        return PromptMessage("user", TextContent(part))
    if isinstance(part, BLOCKS):
        return PromptMessage("user", part)
    raise TypeError(f"a prompt gives texts, content blocks or messages, not {type(part).__name__}")


def _checked(message: PromptMessage) -> PromptMessage:
    if message.role not in _ROLES:
        raise TypeError(f"a message of a prompt is from {' or '.join(_ROLES)}, not from {message.role!r}")
    if not isinstance(message.content, BLOCKS):
        raise TypeError(f"a message of a prompt holds a content block, not {type(message.content).__name__}")
    return message
