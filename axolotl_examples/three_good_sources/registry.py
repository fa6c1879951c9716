"""The registry: categories of a topic each, and three sources in every one of them."""

from datetime import date
from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field

from axolotl_examples.three_good_sources.fields import HttpsUrl, Keyword, Line, PublicKeyText, Slug, Version


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class SourceType(StrEnum):
    """What a reader finds at a source."""

    BOOK = "book"
    COURSE = "course"
    DOCUMENTATION = "documentation"
    EXERCISES = "exercises"
    GUIDE = "guide"
    REFERENCE = "reference"
    SOFTWARE = "software"


class Source(_Part):
    """A place to learn from, and why it was chosen."""

    rank: int
    name: Line
    url: HttpsUrl
    type: SourceType
    why: Line


class Category(_Part):
    """A topic: how people ask for it, and where they should look."""

    slug: Slug
    name: Line
    description: Line
    query_patterns: tuple[Line, ...] = Field(min_length=1)
    keywords: tuple[Keyword, ...] = Field(min_length=1)
    sources: tuple[Source, ...]

    @property
    def tags(self) -> tuple[str, ...]:
        """The words of the slug."""
        return tuple(self.slug.split("-"))


class Curator(_Part):
    """Who chose the sources; without a key, the registry is not signed yet."""

    name: Line
    pubkey: PublicKeyText | None


class Endorsement(_Part):
    """Another curator who vouches for this registry."""

    name: Line
    pubkey: PublicKeyText
    why: Line


class Registry(_Part):
    """Everything a curator publishes."""

    version: Version
    updated: date
    curator: Curator
    endorsements: tuple[Endorsement, ...]
    categories: tuple[Category, ...] = Field(min_length=1)

    @property
    def by_slug(self) -> tuple[Category, ...]:
        """The categories in the order of their slugs."""
        return tuple(sorted(self.categories, key=lambda category: category.slug))
