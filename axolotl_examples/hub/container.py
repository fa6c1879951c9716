"""The container of the hub: its settings, mounted activations and their services."""

from dependency_injector import containers, providers
from pydantic import PositiveInt
from pydantic_settings import BaseSettings, SettingsConfigDict

from axolotl_core import ToolRegistry
from axolotl_examples.hub.conversation import Conversation, CourteousResponder
from axolotl_examples.hub.mounting import Directory, NamespacedNames, mount
from axolotl_examples.hub.repository import open_conversations


class HubSettings(BaseSettings):
    """The settings of the hub itself, from environment variables. The settings of the server belong to Axolotl."""

    model_config = SettingsConfigDict(env_prefix="HUB_", frozen=True)

    database: str = ":memory:"
    """The database file. By default conversations are kept in memory only."""
    max_turns: PositiveInt = 200
    """How many turns of a session are kept. The oldest are dropped."""
    max_sessions: PositiveInt = 100
    """How many sessions one principal may have."""


class Container(containers.DeclarativeContainer):
    """Activations in their namespaces, and the rule that every tool name has a namespace."""

    settings = providers.Object(
        {
            "server": {"name": "axolotl-hub", "title": "Axolotl hub"},
            "protocol": {"is_error": "always"},  # also "isError": false
        }
    )
    hub_settings = providers.Singleton(HubSettings)

    conversations = providers.Resource(
        open_conversations,
        hub_settings.provided.database,
        hub_settings.provided.max_turns,
        hub_settings.provided.max_sessions,
    )
    responder = providers.Singleton(CourteousResponder)
    tool_registry = providers.Singleton(ToolRegistry)

    conversation = providers.Singleton(Conversation, conversations, responder)
    name_rule = providers.Singleton(NamespacedNames)
    tools = providers.List(
        providers.Callable(mount, "conversation", conversation),
        providers.Callable(mount, "claudecode", conversation),  # the same sessions under a second name
        providers.Callable(mount, "hub", providers.Singleton(Directory)),
    )
