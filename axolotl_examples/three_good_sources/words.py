"""The normalized words of a text, and stop words."""

import re
import unicodedata
from typing import Final

_WORD: Final = re.compile(r"[^\W_]+")

# fmt: off
STOP_WORDS: Final = frozenset({
    "a", "about", "all", "am", "an", "and", "any", "are", "as", "at", "be", "best", "but", "by", "can", "could", "did",
    "do", "does", "find", "for", "from", "get", "give", "good", "had", "has", "have", "how", "i", "if", "in", "into",
    "is", "it", "its", "just", "know", "like", "look", "looking", "may", "me", "more", "most", "my", "need", "of", "on",
    "one", "or", "our", "own", "please", "recommend", "resource", "resources", "should", "show", "so", "some", "source",
    "sources", "tell", "than", "that", "the", "their", "them", "then", "there", "these", "they", "this", "to", "up",
    "us", "want", "was", "we", "were", "what", "when", "where", "which", "who", "why", "will", "with", "would", "you",
    "your",
})
"""Common words that say nothing about the topic of a query."""
# fmt: on


def words_of(text: str) -> frozenset[str]:
    """Split a text into words, ignoring case and accents."""
    decomposed = unicodedata.normalize("NFKD", text)
    plain = "".join(character for character in decomposed if not unicodedata.combining(character))
    return frozenset(_WORD.findall(plain.casefold()))
