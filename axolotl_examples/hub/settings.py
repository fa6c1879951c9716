"""What an operator can set, in the environment."""

from pydantic_settings import BaseSettings, SettingsConfigDict


class HubSettings(BaseSettings):
    """The settings of the hub itself; those of the server are Axolotl's."""

    model_config = SettingsConfigDict(env_prefix="HUB_", frozen=True)

    database: str = ":memory:"
    """The file that keeps the conversations, `HUB_DATABASE` in the environment; in memory they end with the server."""
