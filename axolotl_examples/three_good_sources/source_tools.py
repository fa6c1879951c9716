"""The four tools: sources, categories, provenance and endorsements."""

from typing import Annotated, Final

from pydantic import Field

from axolotl_core import ToolAnnotations, ToolError, tool
from axolotl_examples.three_good_sources.loading import RegistryFile
from axolotl_examples.three_good_sources.matcher import BelowThreshold, EmptyQuery, IMatcher, QueryAllStopWords
from axolotl_examples.three_good_sources.registry import Category, Endorsement, Source

_READING: Final = ToolAnnotations(read_only=True, idempotent=True, open_world=False)
_COMMAND: Final = f"python -m {__package__} verify"
_NO_KEY: Final = "Not yet configured"
_NO_ENDORSEMENTS: Final = (
    "This registry does not yet have any endorsements. Endorsements allow\n"
    "other curators to vouch for the quality of this registry's sources.\n"
    "This feature will be available in a future version."
)

Query = Annotated[
    str,
    Field(
        max_length=4000,
        description=(
            "Natural language query describing what sources to find. "
            'Examples: "learn rust programming", "set up bitcoin node", "self-host email"'
        ),
        examples=["learn rust programming"],
    ),
]
Threshold = Annotated[
    float | None,
    Field(
        ge=0,
        le=1,
        description=(
            "Optional match threshold (0.0-1.0) for sensitivity tuning. "
            "Lower values return more results, higher values require closer matches. Default: 0.4"
        ),
    ),
]


class SourceTools:
    """Answers from one registry. Errors say what the model can do next."""

    def __init__(self, file: RegistryFile, matcher: IMatcher, default_threshold: float) -> None:
        self._file = file
        self._registry = file.registry
        self._matcher = matcher
        self._default_threshold = default_threshold

    @tool(
        title="Get sources",
        description="Find three curated, human-vetted sources for a topic. Searches across categories using fuzzy "
        "matching against known query patterns. Returns the matching category with name, description, and all three "
        "ranked sources including URLs and explanations. Example queries: 'learn rust programming', 'set up a bitcoin "
        "node', 'self-host email server'.",
        annotations=_READING,
    )
    async def get_sources(self, query: Query, threshold: Threshold = None) -> str:
        try:
            match = self._matcher.match(query, self._default_threshold if threshold is None else threshold)
        except EmptyQuery:
            raise ToolError(
                "Query cannot be empty. Provide a natural language query describing what sources you need."
            ) from None
        except QueryAllStopWords:
            raise ToolError(
                "Query contains only common words (stop words) with no searchable content. Try more specific terms."
            ) from None
        except BelowThreshold as error:
            closest = error.closest
            slugs = ", ".join(category.slug for category in self._registry.by_slug)
            raise ToolError(
                f"No matching category found for query '{query}'. Closest match: {closest.category.slug} "
                f"(score: {closest.score:.2f}). Available categories: {slugs}."
            ) from None
        category, curator = match.category, self._registry.curator
        return (
            f"Category: {category.name}\n"
            f"Slug: {category.slug}\n"
            f"Description: {category.description}\n"
            "\n"
            f"Registry Version: {self._registry.version}\n"
            f"Curator: {curator.name} ({curator.pubkey or _NO_KEY})\n"
            "\n"
            "Sources:\n" + "\n".join(map(_source_entry, category.sources))
        )

    @tool(
        title="List categories",
        description="List all available topic categories in the registry. Returns each category's slug identifier, "
        "display name, and description. Use this to discover what topics have curated sources before querying. "
        "No parameters required.",
        annotations=_READING,
    )
    async def list_categories(self) -> str:
        categories = self._registry.by_slug
        return f"Categories ({len(categories)}):\n\n" + "\n".join(map(_category_entry, categories))

    @tool(
        title="Get provenance",
        description="Get curator identity and verification information for this registry. Returns the curator's name, "
        "PKARR public key (when available), registry version, and instructions for cryptographic verification of "
        "source authenticity. No parameters required.",
        annotations=_READING,
    )
    async def get_provenance(self) -> str:
        registry, seal = self._registry, self._file.seal
        identity = (
            f"Curator: {registry.curator.name}\n"
            f"Public Key: {registry.curator.pubkey or _NO_KEY}\n"
            f"Registry Version: {registry.version}\n"
            f"Last Updated: {registry.updated}\n"
            f"Endorsements: {len(registry.endorsements)} endorsement(s)\n"
            "\n"
            "Verification:\n"
        )
        if seal is None:
            return (
                f"{identity}This registry is curated by {registry.curator.name}. It is not signed yet, so its\n"
                "author cannot be verified.\n"
                "\n"
                f"File: {self._file.name}\n"
                f"Digest: {self._file.digest}"
            )
        return (
            f"{identity}This registry is curated by {registry.curator.name}. Source authenticity can be verified\n"
            "using the PKARR public key above. Each source is manually researched\n"
            "and vetted for quality. The registry is cryptographically signed to\n"
            "prevent tampering.\n"
            "\n"
            f"Signed File: {self._file.name}\n"
            f"Digest: {self._file.digest}\n"
            f"Signature (Ed25519): {seal.signature}\n"
            f"Command: {_COMMAND}"
        )

    @tool(
        title="Get endorsements",
        description="Get the list of endorsed curators for this registry. In v1, this returns an empty list. Future "
        "versions will support curator endorsements with trust relationships. No parameters required.",
        annotations=_READING,
    )
    async def get_endorsements(self) -> str:
        endorsements = self._registry.endorsements
        entries = "\n".join(map(_endorsement_entry, endorsements)) or _NO_ENDORSEMENTS
        return f"Endorsements: {len(endorsements)}\n\n{entries}"


def _source_entry(source: Source) -> str:
    return f"\n{source.rank}. {source.name}\n   URL: {source.url}\n   Type: {source.type}\n   Why: {source.why}"


def _category_entry(category: Category) -> str:
    return f"- {category.slug}: {category.name}\n  {category.description}\n  Tags: {', '.join(category.tags)}"


def _endorsement_entry(endorsement: Endorsement) -> str:
    return f"- {endorsement.name} ({endorsement.pubkey})\n  {endorsement.why}"
