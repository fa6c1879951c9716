"""A tool that lists the endorsements of the registry."""

from typing import Final

from axolotl_core import Context, ITool, NoArguments, ToolAnnotations
from axolotl_examples.three_good_sources.registry import Endorsement, Registry

_NONE_YET: Final = (
    "This registry does not yet have any endorsements. Endorsements allow\n"
    "other curators to vouch for the quality of this registry's sources.\n"
    "This feature will be available in a future version."
)


class GetEndorsements(ITool[NoArguments, str]):
    """Lists the endorsements of the registry."""

    name = "get_endorsements"
    title = "Get endorsements"
    description = (
        "Get the list of endorsed curators for this registry. In v1, this returns an empty list. Future versions will "
        "support curator endorsements with trust relationships. No parameters required."
    )
    annotations = ToolAnnotations(read_only=True, idempotent=True, open_world=False)

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    async def execute(self, arguments: NoArguments, context: Context) -> str:
        endorsements = self._registry.endorsements
        entries = "\n".join(map(_entry, endorsements)) or _NONE_YET
        return f"Endorsements: {len(endorsements)}\n\n{entries}"


def _entry(endorsement: Endorsement) -> str:
    return f"- {endorsement.name} ({endorsement.pubkey})\n  {endorsement.why}"
