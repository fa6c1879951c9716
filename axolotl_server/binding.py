"""A feature made ready to be called: its effective limits, its folded layers and what writes its results."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

from axolotl_core.errors import ConfigurationError
from axolotl_core.feature import IFeature, Kind
from axolotl_core.layer import ILayer, Invoke, fold
from axolotl_core.registry import AnyTool
from axolotl_core.spec import FeatureSpec, Limits, ToolSpec
from axolotl_server.execution.loop import run_on_loop
from axolotl_server.execution.threads import ThreadRunner
from axolotl_server.request import Request
from axolotl_server.results import result_encoder
from axolotl_server.settings import ServerSettings, ToolOverrides

__all__ = ["Binder", "Binding", "EncodeOutput", "ToolBinding"]

SpecT_co = TypeVar("SpecT_co", bound=FeatureSpec, covariant=True)
SpecT = TypeVar("SpecT", bound=FeatureSpec)

EncodeOutput: TypeAlias = Callable[[Any, Request], bytes]
"""Writes an output as the result of a request; raises where the output breaks the feature's own promise."""


@dataclass(frozen=True, slots=True, eq=False)
class Binding(Generic[SpecT_co]):
    """All that a call of one feature needs, found by one lookup."""

    spec: SpecT_co
    invoke: Invoke
    encode: EncodeOutput
    layers: tuple[ILayer, ...]
    """Those that concern the feature, the outermost first."""


ToolBinding: TypeAlias = Binding[ToolSpec]


class Binder:
    """Compiles features."""

    def __init__(self, settings: ServerSettings, layers: Sequence[ILayer], threads: ThreadRunner) -> None:
        self._settings = settings
        self._layers = layers
        self._innermost: dict[str, Callable[[FeatureSpec], Invoke]] = {"loop": run_on_loop, "thread": threads.runner}

    def bind_tool(self, tool: AnyTool) -> ToolBinding:
        """Compile a tool.

        Raises:
            ConfigurationError: if its schemas or limits cannot be used.
        """
        try:
            spec = ToolSpec.of(tool, self.limits_of_tool(tool))
            return self._compile(spec, result_encoder(spec))
        except ConfigurationError:
            raise
        except Exception as error:
            raise ConfigurationError(f"Tool {tool.name!r} cannot be compiled: {error}") from error

    def bind(self, feature: IFeature, kind: Kind, name: str, encode: EncodeOutput) -> Binding[FeatureSpec]:
        """Compile anything else; what it is given arrives as text and is converted.

        Raises:
            ConfigurationError: if it cannot be used.
        """
        try:
            return self._compile(FeatureSpec(feature, kind, name, self._limits_of(feature, True)), encode)
        except ConfigurationError:
            raise
        except Exception as error:
            raise ConfigurationError(f"{kind.title()} {name!r} cannot be compiled: {error}") from error

    def limits_of_tool(self, tool: AnyTool) -> Limits:
        """Weigh what the operator, the tool and the defaults say."""
        said = self._settings.tools.overrides_for(tool.name)
        coerce = _first(said.coerce_arguments, tool.coerce_arguments, self._settings.tools.coerce_arguments)
        return self._limits_of(tool, coerce, said)

    def _limits_of(self, feature: IFeature, coerce: bool, said: ToolOverrides | None = None) -> Limits:
        said = said or ToolOverrides()
        default = self._settings.limits.timeout_seconds
        return Limits(
            timeout_seconds=_first(said.timeout_seconds, feature.timeout_seconds, default),
            max_concurrency=_first(said.max_concurrency, feature.max_concurrency),
            execution=_first(said.execution, feature.execution),
            coerce_arguments=coerce,
        )

    def _compile(self, spec: SpecT, encode: EncodeOutput) -> Binding[SpecT]:
        invoke, layers = fold(self._layers, spec, self._innermost[spec.limits.execution](spec))
        return Binding(spec, invoke, encode, layers)


def _first(*candidates: Any) -> Any:
    return next((candidate for candidate in candidates if candidate is not None), None)
