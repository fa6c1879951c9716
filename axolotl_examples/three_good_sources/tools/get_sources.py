"""A tool that finds sources, or explains to the model why there is no match."""

from pydantic import BaseModel, Field

from axolotl_core import Context, ITool, ToolAnnotations, ToolError
from axolotl_examples.three_good_sources.matcher import (
    BelowThreshold,
    EmptyQuery,
    IMatcher,
    Match,
    QueryAllStopWords,
)
from axolotl_examples.three_good_sources.registry import Category, Registry, Source


class Question(BaseModel):
    """A query for sources."""

    query: str = Field(
        max_length=4000,
        description=(
            "Natural language query describing what sources to find. "
            'Examples: "learn rust programming", "set up bitcoin node", "self-host email"'
        ),
        examples=["learn rust programming"],
    )
    threshold: float | None = Field(
        None,
        ge=0,
        le=1,
        description=(
            "Optional match threshold (0.0-1.0) for sensitivity tuning. "
            "Lower values return more results, higher values require closer matches. Default: 0.4"
        ),
    )


class GetSources(ITool[Question, str]):
    """Finds the category of a query and returns its sources."""

    name = "get_sources"
    title = "Get sources"
    description = (
        "Find three curated, human-vetted sources for a topic. Searches across categories using fuzzy matching against "
        "known query patterns. Returns the matching category with name, description, and all three ranked sources "
        "including URLs and explanations. Example queries: 'learn rust programming', 'set up a bitcoin node', "
        "'self-host email server'."
    )
    annotations = ToolAnnotations(read_only=True, idempotent=True, open_world=False)

    def __init__(self, registry: Registry, matcher: IMatcher, default_threshold: float) -> None:
        self._registry = registry
        self._matcher = matcher
        self._default_threshold = default_threshold

    async def execute(self, arguments: Question, context: Context) -> str:
        threshold = self._default_threshold if arguments.threshold is None else arguments.threshold
        try:
            match = self._matcher.match(arguments.query, threshold)
        except EmptyQuery:
            raise ToolError(
                "Query cannot be empty. Provide a natural language query describing what sources you need."
            ) from None
        except QueryAllStopWords:
            raise ToolError(
                "Query contains only common words (stop words) with no searchable content. Try more specific terms."
            ) from None
        except BelowThreshold as error:
            raise ToolError(self._no_match(arguments.query, error.closest)) from None
        return self._answer(match.category)

    def _answer(self, category: Category) -> str:
        curator = self._registry.curator
        return "\n".join(
            [
                f"Category: {category.name}",
                f"Slug: {category.slug}",
                f"Description: {category.description}",
                "",
                f"Registry Version: {self._registry.version}",
                f"Curator: {curator.name} ({curator.pubkey or 'Not yet configured'})",
                "",
                "Sources:",
                *map(_entry, category.sources),
            ]
        )

    def _no_match(self, query: str, closest: Match) -> str:
        slugs = ", ".join(category.slug for category in self._registry.by_slug)
        return (
            f"No matching category found for query '{query}'. "
            f"Closest match: {closest.category.slug} (score: {closest.score:.2f}). Available categories: {slugs}."
        )


def _entry(source: Source) -> str:
    return f"\n{source.rank}. {source.name}\n   URL: {source.url}\n   Type: {source.type}\n   Why: {source.why}"
