"""The models of a registry: categories, each with three sources."""

from datetime import date
from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field

from axolotl_examples.three_good_sources.fields import HttpsUrl, Keyword, Line, PublicKeyText, Slug, Version


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class SourceType(StrEnum):
    """The kind of material at a source."""

    BOOK = "book"
    COURSE = "course"
    DOCUMENTATION = "documentation"
    EXERCISES = "exercises"
    GUIDE = "guide"
    REFERENCE = "reference"
    SOFTWARE = "software"


class Source(_Part):
    """A recommended source and the reason for it."""

    rank: int
    name: Line
    url: HttpsUrl
    type: SourceType
    why: Line


class Category(_Part):
    """A topic with its query patterns, keywords and sources.

    A keyword is a word or phrase that is enough to recognize the topic, unless a negative keyword occurs. A hint
    belongs to other topics, too, and counts only together with another word of the category.
    """

    slug: Slug
    name: Line
    description: Line
    query_patterns: tuple[Line, ...] = Field(min_length=1)
    keywords: tuple[Keyword, ...] = Field(min_length=1)
    hints: tuple[Keyword, ...] = ()
    negative_keywords: tuple[Keyword, ...] = ()
    sources: tuple[Source, ...]

    @property
    def tags(self) -> tuple[str, ...]:
        """The words of the slug."""
        return tuple(self.slug.split("-"))


class Curator(_Part):
    """The person who chose the sources. Without a key, the registry is unsigned."""

    name: Line
    pubkey: PublicKeyText | None


class Endorsement(_Part):
    """Another curator who vouches for this registry."""

    name: Line
    pubkey: PublicKeyText
    why: Line


class Registry(_Part):
    """The whole registry."""

    version: Version
    updated: date
    curator: Curator
    endorsements: tuple[Endorsement, ...]
    categories: tuple[Category, ...] = Field(min_length=1)

    @property
    def by_slug(self) -> tuple[Category, ...]:
        """The categories, sorted by slug."""
        return tuple(sorted(self.categories, key=lambda category: category.slug))
