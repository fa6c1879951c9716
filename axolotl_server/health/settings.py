"""What an operator can say about health."""

from typing import Annotated, Self, TypeAlias

from pydantic import Field, model_validator

from axolotl_server.settings_section import Section

__all__ = ["HealthSettings"]

_Path: TypeAlias = Annotated[str, Field(pattern=r"^(/[^?#\s]*)?$")]


class HealthSettings(Section):
    """The routes for probes, over HTTP; an empty path switches one off."""

    enabled: bool = True
    """Whether there are any routes for probes."""
    live_path: _Path = "/livez"
    """Where a probe asks whether the process should be left running."""
    ready_path: _Path = "/readyz"
    """Where a probe asks whether calls may come."""
    startup_path: _Path = "/startupz"
    """Where a probe asks whether the server has started."""
    path: _Path = "/health"
    """Where everything is shown together."""
    cache_seconds: float = Field(1.0, ge=0)
    """How long the finding of a check holds, however often it is asked for."""
    details: bool = False
    """Whether everybody who can reach the routes may read why a check is not well; the log says it in any case."""

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths that are served."""
        paths = (self.live_path, self.ready_path, self.startup_path, self.path)
        return tuple(filter(None, paths)) if self.enabled else ()

    @model_validator(mode="after")
    def _check_paths(self) -> Self:
        if len(set(self.paths)) != len(self.paths):
            raise ValueError("live_path, ready_path, startup_path and path must lead to different places")
        return self
