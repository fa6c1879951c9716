from dependency_injector import containers, providers

from axolotl_core import tool


@tool(max_concurrency=4)
async def greet(name: str) -> str:
    """Greet someone by name."""
    return f"Hello, {name}!"


class Container(containers.DeclarativeContainer):
    settings = providers.Object({"server": {"name": "acme-greeter"}})
    tools = providers.List(providers.Object(greet))
