"""A tool with an injected service: tests replace the clock."""

from collections.abc import Callable
from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo

from pydantic import BaseModel, Field

from axolotl_core import Context, ITool, ToolAnnotations, ToolError


class Place(BaseModel):
    """A place, given by its time zone."""

    timezone: str = Field("UTC", description="A time zone by its IANA name.", examples=["Europe/Vienna"])


class Moment(BaseModel):
    """A local time."""

    time: datetime = Field(description="Date and time, with the offset from UTC.")
    timezone: str = Field(description="The requested time zone.")
    weekday: str = Field(description="The day of the week, in English.")


class CurrentTime(ITool[Place, Moment]):
    """Returns the current time in any time zone."""

    name = "current_time"
    title = "Current time"
    description = "Return the current date, time and weekday in a time zone."
    annotations = ToolAnnotations(read_only=True, open_world=False)

    def __init__(self, now: Callable[[tzinfo], datetime]) -> None:
        self._now = now

    async def execute(self, arguments: Place, context: Context) -> Moment:
        now = self._now(_zone(arguments.timezone))
        return Moment(time=now, timezone=arguments.timezone, weekday=f"{now:%A}")


def _zone(name: str) -> tzinfo:
    if name.upper() == "UTC":
        return UTC  # works even without a time zone database
    try:
        return ZoneInfo(name)
    except (LookupError, ValueError, OSError):
        raise ToolError(f"There is no time zone {name!r}; use an IANA name such as 'Europe/Vienna'.") from None
