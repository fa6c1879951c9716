"""The normalized words of a text, their stems, and stop words."""

import re
import unicodedata
from typing import Final

_WORD: Final = re.compile(r"[^\W_]+")
_ENDINGS: Final = ("ings", "ing", "ers", "ies", "es", "ed", "er", "s", "e", "y")
_MIN_STEM_LETTERS: Final = 4

# fmt: off
STOP_WORDS: Final = frozenset({
    "a", "about", "all", "am", "an", "and", "any", "are", "as", "at", "be", "best", "but", "by", "can", "could", "did",
    "do", "does", "find", "for", "from", "get", "give", "good", "had", "has", "have", "how", "i", "if", "in", "into",
    "is", "it", "its", "just", "know", "like", "look", "looking", "may", "me", "more", "most", "my", "need", "of", "on",
    "one", "or", "our", "own", "please", "recommend", "resource", "resources", "should", "show", "so", "some", "source",
    "sources", "tell", "than", "that", "the", "their", "them", "then", "there", "these", "they", "this", "to", "up",
    "us", "use", "used", "using", "want", "was", "we", "were", "what", "when", "where", "which", "who", "why", "will",
    "with", "would", "you", "your",
})
"""Common words that say nothing about the topic of a query."""
# fmt: on


def tokens_of(text: str) -> tuple[str, ...]:
    """Split a text into words in their order, ignoring case and accents."""
    decomposed = unicodedata.normalize("NFKD", text)
    plain = "".join(character for character in decomposed if not unicodedata.combining(character))
    return tuple(_WORD.findall(plain.casefold()))


def words_of(text: str) -> frozenset[str]:
    """Return the words of a text without their order."""
    return frozenset(tokens_of(text))


def stem(word: str) -> str:
    """Remove a common ending, so that `borrow`, `borrows` and `borrowing` are equal. Short words are not changed."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _MIN_STEM_LETTERS:
            return word.removesuffix(ending)
    return word
