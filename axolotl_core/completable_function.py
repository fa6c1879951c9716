"""Functions as prompts and resource templates, whose arguments other functions complete."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, TypeVar

from axolotl_core.completable import ICompletable
from axolotl_core.completion import Completer, CompletionOutput, bound_to, check_completer, run_completer
from axolotl_core.function_feature import FunctionFeature
from axolotl_core.parameters import parameters_schema
from axolotl_core.schema import JsonSchema

__all__ = ["CompletableFunction"]

P = ParamSpec("P")
R = TypeVar("R")
CompleterT = TypeVar("CompleterT", bound=Completer)


class CompletableFunction(FunctionFeature[P, R], ICompletable):
    """A function whose arguments have completers."""

    def __init__(self, function: Callable[P, R], options: Mapping[str, Any], *, bound: bool = True) -> None:
        super().__init__(function, options, bound=bound)
        self.completers: dict[str, Completer] = {}

    def completes(self, argument: str) -> Callable[[CompleterT], CompleterT]:
        """Let the decorated function suggest values for an argument; it takes what was typed so far.

        Raises:
            ConfigurationError: if there is no such argument.
        """

        def decorate(completer: CompleterT) -> CompleterT:
            check_completer(completer, argument, [one.public_name for one in self._signature.parameters])
            self.completers[argument] = completer
            return completer

        return decorate

    async def complete(self, argument: str, value: str, known: Mapping[str, str]) -> CompletionOutput:
        """Ask the completer of an argument; one that has none completes itself if it can."""
        completer = self.completers.get(argument)
        if completer is None:
            return await super().complete(argument, value, known)
        return await run_completer(completer, value, known)

    @property
    def arguments_schema(self) -> JsonSchema:
        """The schema of the function's parameters."""
        return parameters_schema(self._signature.parameters)

    def completers_for(self, instance: object) -> dict[str, Completer]:
        """Give the completers bound to an object, for a method of it."""
        return {argument: bound_to(instance, completer) for argument, completer in self.completers.items()}

    @property
    def completes_without_waiting(self) -> bool:
        """Whether a completer is a plain function, which may block and therefore runs in a worker thread."""
        return any(not inspect.iscoroutinefunction(completer) for completer in self.completers.values())
