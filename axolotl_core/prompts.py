"""Prompts: `IPrompt`, `PromptMessage`, `@prompt` and `prompts_of`."""

from abc import abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, Generic, Literal, TypeAlias, TypeVar, Unpack, overload

import msgspec

from axolotl_core.arguments import check_textual
from axolotl_core.calls.context import Context
from axolotl_core.content import BLOCKS, ContentBlock, TextContent
from axolotl_core.features.completion import CompletableFunction, ICompletable, check_model
from axolotl_core.features.feature import check_attributes, check_awaited, check_kind, declared_types
from axolotl_core.features.function_feature import FeatureOptions, decorate, features_of
from axolotl_core.schema import P, R

ArgumentsT = TypeVar("ArgumentsT")
_ROLES: Final = ("user", "assistant")

_NOT_LISTS: Final = (str, bytes, bytearray, memoryview)
"""Sequences that are a single value, even if it is invalid."""


class PromptMessage(msgspec.Struct, frozen=True):
    """One message of a prompt: its role and content. A string is a text block."""

    role: Literal["user", "assistant"]
    content: str | ContentBlock

    @property
    def block(self) -> ContentBlock:
        """The content as a block."""
        return TextContent(self.content) if isinstance(self.content, str) else self.content


class PromptResult(msgspec.Struct, frozen=True):
    """A complete result, for prompts that control every part of it."""

    messages: Sequence[PromptMessage]
    description: str | None = None
    meta: Mapping[str, Any] | None = None


_Part: TypeAlias = str | ContentBlock | PromptMessage
PromptOutput: TypeAlias = _Part | Sequence[_Part] | PromptResult
"""The possible outputs of a prompt. Strings and content blocks become messages of the user."""


class IPrompt(ICompletable, Generic[ArgumentsT]):
    """A typed prompt: `class Review(IPrompt[ReviewArguments])` with a name, a description and `render`.

    Its arguments are a pydantic model (`NoArguments` for none). They arrive as strings and are converted, so the fields
    can be of type str, int, float, bool, date, Literal or Enum.
    """

    _code = ("render", "execute")

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        models = declared_types(cls, IPrompt, "render", "arguments", "Arguments")
        if models is not None:
            (cls.input_model,) = models

    @abstractmethod
    def render(self, arguments: ArgumentsT, context: Context) -> PromptOutput | Awaitable[PromptOutput]:
        """Render the messages, in an `async def` or in a plain `def`, which runs in a worker thread.

        Raises:
            ToolError: to report a problem to the caller. Any other exception is logged and hidden.
        """

    async def execute(self, arguments: Any, context: Context) -> PromptResult:
        """Render the prompt and normalize the output."""
        rendering: Any = self.render(arguments, context)
        return prompt_result(check_awaited(self, await rendering))


def prompt_result(output: Any) -> PromptResult:
    """Normalize the output of a prompt.

    Raises:
        TypeError: if it contains anything but strings, content blocks and messages.
    """
    if isinstance(output, PromptResult):
        return msgspec.structs.replace(output, messages=tuple(map(_message, output.messages)))
    parts = output if isinstance(output, Sequence) and not isinstance(output, _NOT_LISTS) else (output,)
    return PromptResult(tuple(map(_message, parts)))


def check_prompt(prompt: Any) -> None:
    """Check a prompt before it is registered.

    Raises:
        ConfigurationError: if the prompt is incomplete.
    """
    check_kind(prompt, "prompt", "subclass IPrompt or use @prompt", IPrompt)
    check_attributes(prompt, IPrompt)
    check_model(prompt, "arguments", "IPrompt[Arguments]")
    check_textual(f"Prompt {prompt.name!r}", prompt.arguments_schema)


def _message(part: Any) -> PromptMessage:
    if isinstance(part, str):
        return PromptMessage("user", TextContent(part))
    if isinstance(part, BLOCKS):
        return PromptMessage("user", part)
    if not isinstance(part, PromptMessage):
        raise TypeError(f"a prompt returns strings, content blocks or messages, not {type(part).__name__}")
    if part.role not in _ROLES:
        raise TypeError(f"the role of a prompt message is {' or '.join(_ROLES)}, not {part.role!r}")
    if not isinstance(part.block, BLOCKS):
        raise TypeError(f"a prompt message contains a string or a content block, not {type(part.content).__name__}")
    return part


class FunctionPrompt(CompletableFunction[P, R], IPrompt[dict[str, Any]]):
    """The prompt that `@prompt` creates. Calling it calls the function."""

    collector = "prompts_of"

    def __init__(self, function: Callable[P, R], options: FeatureOptions, *, bound: bool = True) -> None:
        super().__init__(function, options, bound=bound)
        if self.streams:
            self.returned = list  # each string that a generator yields is a message of its own

    def __get__(self, instance: object | None, owner: type) -> "FunctionPrompt[..., R]":
        bound: FunctionPrompt[..., R] = self.bind(instance, owner)
        return bound

    async def render(self, arguments: dict[str, Any], context: Context) -> PromptOutput:
        output: PromptOutput = await self.call_function(arguments, context)
        return output


@overload
def prompt(function: Callable[P, R], /) -> FunctionPrompt[P, R]: ...
@overload
def prompt(**options: Unpack[FeatureOptions]) -> Callable[[Callable[P, R]], FunctionPrompt[P, R]]: ...
def prompt(function: Callable[P, R] | None = None, /, **options: Unpack[FeatureOptions]) -> Any:
    """Turn a function or method into a prompt. Its parameters are the prompt's arguments.

    Raises:
        ConfigurationError: if a parameter cannot be passed by name, or an option does not exist.
    """
    return decorate("prompt", FunctionPrompt, options, FeatureOptions, function)


def prompts_of(instance: object) -> tuple[FunctionPrompt[..., Any], ...]:
    """Return the `@prompt` methods of an object, bound to it, in the order of their definition."""
    return features_of(instance, FunctionPrompt)
