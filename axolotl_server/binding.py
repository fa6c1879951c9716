"""A tool made ready to be called: its effective limits, its folded layers and what writes its results."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from axolotl_core.errors import ConfigurationError
from axolotl_core.layer import ILayer, Invoke, fold
from axolotl_core.registry import AnyTool
from axolotl_core.spec import ToolLimits, ToolSpec
from axolotl_server.execution.loop import run_on_loop
from axolotl_server.execution.threads import ThreadRunner
from axolotl_server.results import EncodeResult, result_encoder
from axolotl_server.settings import ServerSettings

__all__ = ["Binder", "ToolBinding"]


@dataclass(frozen=True, slots=True, eq=False)
class ToolBinding:
    """All that a call of one tool needs, found by one lookup."""

    spec: ToolSpec
    invoke: Invoke
    encode: EncodeResult
    layers: tuple[ILayer, ...]
    """Those that concern the tool, the outermost first."""


class Binder:
    """Compiles tools."""

    def __init__(self, settings: ServerSettings, layers: Sequence[ILayer], threads: ThreadRunner) -> None:
        self._settings = settings
        self._layers = layers
        self._innermost: dict[str, Callable[[ToolSpec], Invoke]] = {"loop": run_on_loop, "thread": threads.runner}

    def bind(self, tool: AnyTool) -> ToolBinding:
        """Compile one tool.

        Raises:
            ConfigurationError: if its schemas or limits cannot be used.
        """
        try:
            spec = ToolSpec.of(tool, self.limits_of(tool))
            invoke, layers = fold(self._layers, spec, self._innermost[spec.limits.execution](spec))
            return ToolBinding(spec, invoke, result_encoder(spec), layers)
        except ConfigurationError:
            raise
        except Exception as error:
            raise ConfigurationError(f"Tool {tool.name!r} cannot be compiled: {error}") from error

    def limits_of(self, tool: AnyTool) -> ToolLimits:
        """Weigh what the operator, the tool and the defaults say."""
        said = self._settings.tools.overrides_for(tool.name)
        return ToolLimits(
            timeout_seconds=_first(said.timeout_seconds, tool.timeout_seconds, self._settings.limits.timeout_seconds),
            max_concurrency=_first(said.max_concurrency, tool.max_concurrency),
            execution=_first(said.execution, tool.execution),
            coerce_arguments=_first(
                said.coerce_arguments, tool.coerce_arguments, self._settings.tools.coerce_arguments
            ),
        )


def _first(*candidates: Any) -> Any:
    return next((candidate for candidate in candidates if candidate is not None), None)
