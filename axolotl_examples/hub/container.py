"""The container of the hub: mounted activations and their services."""

from dependency_injector import containers, providers

from axolotl_core import ToolRegistry
from axolotl_examples.hub.conversation import Conversation
from axolotl_examples.hub.directory import Directory
from axolotl_examples.hub.mounting import NamespacedNames, mount
from axolotl_examples.hub.repository import open_conversations
from axolotl_examples.hub.responder import CourteousResponder
from axolotl_examples.hub.settings import HubSettings


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
