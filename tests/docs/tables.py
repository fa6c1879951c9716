"""Tables of the documentation that are made from the code."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from axolotl_core.protocol.versions import REVISIONS, Revision

_FEATURES: Final = {
    "stateless": "no handshake; every request says its version and capabilities",
    "batches": "batches",
    "tool_annotations": "annotations on tools",
    "audio": "audio content",
    "progress_messages": "messages in progress notifications",
    "titles": "`title` and `_meta` on tools and content",
    "structured_output": "output schemas and structured content",
    "resource_links": "links to resources in content",
    "icons": "icons",
    "argument_errors_as_results": "wrong arguments are a result that the model reads",
    "any_structured_root": "structured content of any JSON type",
    "tasks": "calls that run as tasks, without an extension",
    "polling": "a server may end a stream's connection early; the client comes back for the rest",
    "elicitation": "the user may be asked to fill in a form",
    "rich_forms": "forms with titled and multiple choices, and defaults for all fields",
    "url_elicitation": "the user may be asked to open a page",
    "elicitation_ids": "a question to open a page has an id",
    "sampling_tools": "the client's model may be given tools, and several blocks in a message",
}


def revisions_table() -> str:
    """Make the table of what each protocol revision can express."""
    columns = ("", *(f"`{revision.name}`" for revision in REVISIONS))
    return table(columns, [(text, *_marks(feature)) for feature, text in _FEATURES.items()])


def feature_names() -> set[str]:
    """Name the features that the code knows."""
    return set(Revision.__slots__) - {"name"}


def described_features() -> set[str]:
    """Name the features that the table shows."""
    return set(_FEATURES)


def _marks(feature: str) -> Iterator[str]:
    return ("yes" if getattr(revision, feature) else "–" for revision in REVISIONS)


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Write a table in Markdown."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
