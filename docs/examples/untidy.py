from dependency_injector import containers, providers

from axolotl_core import Context, ITool, NoArguments, tool


@tool
async def find(what: str) -> str:
    """Find something."""
    return what


@tool(name="FIND")
async def find_again(what: str) -> str:
    return what


class Nameless(ITool[NoArguments, str]):
    description = "A tool without a name."

    async def execute(self, arguments: NoArguments, context: Context) -> str:
        return ""


class Container(containers.DeclarativeContainer):
    tools = providers.List(providers.Object(find), providers.Object(find_again), providers.Singleton(Nameless))
