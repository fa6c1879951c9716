"""The settings of the hub, read from environment variables."""

from pydantic import PositiveInt
from pydantic_settings import BaseSettings, SettingsConfigDict


class HubSettings(BaseSettings):
    """The settings of the hub itself. The settings of the server belong to Axolotl."""

    model_config = SettingsConfigDict(env_prefix="HUB_", frozen=True)

    database: str = ":memory:"
    """The database file, set with `HUB_DATABASE`. By default conversations are kept in memory only."""
    max_turns: PositiveInt = 200
    """How many turns of a session are kept, set with `HUB_MAX_TURNS`. The oldest are dropped."""
    max_sessions: PositiveInt = 100
    """How many sessions one principal may have, set with `HUB_MAX_SESSIONS`."""
