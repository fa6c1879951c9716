"""`@prompt`: a function or a method as a prompt, its arguments read from its signature."""

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, Unpack, overload

from axolotl_core.completable_function import CompletableFunction
from axolotl_core.context import ToolContext
from axolotl_core.function_feature import (
    FeatureOptions,
    check_function,
    check_options,
    features_of,
    is_method,
)
from axolotl_core.prompt import IPrompt, PromptOutput, PromptResult, prompt_result

__all__ = ["FunctionPrompt", "prompt", "prompts_of"]

P = ParamSpec("P")
R = TypeVar("R")


class FunctionPrompt(CompletableFunction[P, R], IPrompt[dict[str, Any]]):
    """The prompt that `@prompt` makes; calling it calls the function."""

    collector = "prompts_of"

    def __init__(self, function: Callable[P, R], options: FeatureOptions, *, bound: bool = True) -> None:
        super().__init__(function, options, bound=bound)
        if self.streams:
            self.returned = list  # each text that a generator yields is a message, not a piece of one

    def __get__(self, instance: object | None, owner: type) -> "FunctionPrompt[..., R]":
        if instance is None or self._bound:
            return self
        method = FunctionPrompt(self.function.__get__(instance, owner), self._options)  # type: ignore[arg-type]
        method.completers = self.completers_for(instance)
        return method

    async def render(self, arguments: dict[str, Any], context: ToolContext) -> PromptOutput:
        """Call the function."""
        output: PromptOutput = await CompletableFunction.execute(self, arguments, context)
        return output

    async def execute(self, arguments: dict[str, Any], context: ToolContext) -> PromptResult:
        """Call the function, and bring whatever comes into one form."""
        return prompt_result(await self.render(arguments, context))


@overload
def prompt(function: Callable[P, R], /) -> FunctionPrompt[P, R]: ...
@overload
def prompt(**options: Unpack[FeatureOptions]) -> Callable[[Callable[P, R]], FunctionPrompt[P, R]]: ...
def prompt(function: Callable[P, R] | None = None, /, **options: Unpack[FeatureOptions]) -> Any:
    """Make a prompt of a function or a method; its parameters are the prompt's arguments.

    Raises:
        ConfigurationError: if the signature is none that a caller can fill by name, or there is no such option.
    """
    check_options("prompt", options, FeatureOptions.__annotations__)

    def decorate(target: Callable[P, R]) -> FunctionPrompt[P, R]:
        check_function(target, "prompt")
        return FunctionPrompt(target, options, bound=not is_method(target))

    return decorate if function is None else decorate(function)


def prompts_of(instance: object) -> tuple[FunctionPrompt[..., Any], ...]:
    """Collect the `@prompt` methods of an object, bound to it, in the order of their definition."""
    return features_of(instance, FunctionPrompt)
