from dependency_injector import containers, providers

from axolotl_core import tool


@tool
async def echo(text: str) -> str:
    """Return the text unchanged."""
    return text


@tool
async def find_invoice(number: int) -> str:
    """Find an invoice."""
    return f"invoice {number}"


@tool
async def delete_invoice(number: int) -> str:
    """Delete an invoice."""
    return f"no more invoice {number}"


# region subcontainers
class Reading(containers.DeclarativeContainer):
    tools = providers.List(providers.Object(find_invoice))


class Writing(containers.DeclarativeContainer):
    tools = providers.List(providers.Object(delete_invoice))


class Container(containers.DeclarativeContainer):
    reading = providers.Container(Reading)
    writing = providers.Container(Writing)

    tools = providers.List(providers.Object(echo))


# endregion subcontainers


# region aggregate
class OneContainer(containers.DeclarativeContainer):
    tools = providers.Aggregate(
        reading=providers.List(providers.Object(find_invoice)),
        writing=providers.List(providers.Object(delete_invoice)),
    )


# endregion aggregate
