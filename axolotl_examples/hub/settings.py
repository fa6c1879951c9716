"""The settings of the hub, read from environment variables."""

from pydantic_settings import BaseSettings, SettingsConfigDict


class HubSettings(BaseSettings):
    """The settings of the hub itself. The settings of the server belong to Axolotl."""

    model_config = SettingsConfigDict(env_prefix="HUB_", frozen=True)

    database: str = ":memory:"
    """The database file, set with `HUB_DATABASE`. By default conversations are kept in memory only."""
