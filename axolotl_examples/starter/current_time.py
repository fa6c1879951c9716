"""A tool with a service: the clock is injected, so that a test can stop it."""

from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo

from pydantic import BaseModel, Field

from axolotl_core import ITool, ToolAnnotations, ToolContext, ToolError
from axolotl_examples.starter.clock import IClock


class Place(BaseModel):
    """Where the time is wanted."""

    timezone: str = Field("UTC", description="A time zone by its IANA name.", examples=["Europe/Vienna"])


class Moment(BaseModel):
    """A point in time as people there tell it."""

    time: datetime = Field(description="Date and time, with the offset from UTC.")
    timezone: str = Field(description="The time zone that was asked for.")
    weekday: str = Field(description="The day of the week, in English.")


class CurrentTime(ITool[Place, Moment]):
    """Tells the time anywhere."""

    name = "current_time"
    title = "Current time"
    description = "Tell date, time and weekday in a time zone, as of now."
    annotations = ToolAnnotations(read_only=True, open_world=False)

    def __init__(self, clock: IClock) -> None:
        self._clock = clock

    async def execute(self, arguments: Place, context: ToolContext) -> Moment:
        """Look at the clock."""
        now = self._clock.now().astimezone(_zone(arguments.timezone))
        return Moment(time=now, timezone=arguments.timezone, weekday=f"{now:%A}")


def _zone(name: str) -> tzinfo:
    if name.upper() == "UTC":
        return UTC  # known everywhere, also on machines without a time zone database
    try:
        return ZoneInfo(name)
    except (LookupError, ValueError, OSError):
        raise ToolError(f"There is no time zone {name!r}; use an IANA name such as 'Europe/Vienna'.") from None
