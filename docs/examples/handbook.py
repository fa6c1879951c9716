from dependency_injector import containers, providers

from axolotl_core import Context, ResourceNotFound, resource

PAGES = {1: "Wash your hands.", 2: "Feed the axolotls."}


@resource("handbook://contents", mime_type="application/json")
def contents() -> list[int]:
    """The page numbers."""
    return list(PAGES)


@resource("handbook://pages/{number}", mime_type="text/plain")
def page(number: int, context: Context) -> str:
    """A page of the handbook."""
    if number not in PAGES:
        raise ResourceNotFound(context.uri)
    return PAGES[number]


class Container(containers.DeclarativeContainer):
    resources = providers.List(providers.Object(contents), providers.Object(page))
