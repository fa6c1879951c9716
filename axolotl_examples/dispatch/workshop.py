"""The same server with two tools, which create and remove other tools."""

from dependency_injector import containers, providers

from axolotl_core import ToolRegistry
from axolotl_examples.dispatch.container import SETTINGS
from axolotl_examples.dispatch.define_tool import DefineTool
from axolotl_examples.dispatch.remove_tool import RemoveTool
from axolotl_examples.dispatch.template_tools import TemplateTools


class Workshop(containers.DeclarativeContainer):
    """A registry that the server serves and that the two tools change."""

    settings = providers.Object(SETTINGS)
    tool_registry = providers.Singleton(ToolRegistry)
    template_tools = providers.Singleton(TemplateTools, tool_registry)
    tools = providers.List(
        providers.Singleton(DefineTool, template_tools),
        providers.Singleton(RemoveTool, template_tools),
    )
