"""The protocol revisions and the features of each."""

from typing import Final

import msgspec
from msgspec.structs import replace


class Revision(msgspec.Struct, frozen=True, eq=False):
    """A protocol revision: its name and the features that its clients understand."""

    name: str
    stateless: bool = False
    """No handshake: each request contains its version and capabilities, each result its type."""
    batches: bool = False
    tool_annotations: bool = False
    audio: bool = False
    progress_messages: bool = False
    titles: bool = False
    """`title` and `_meta` on definitions and content, `lastModified` in annotations."""
    structured_output: bool = False
    resource_links: bool = False
    icons: bool = False
    argument_errors_as_results: bool = False
    """Arguments that fail a tool's schema are an `isError` result instead of a JSON-RPC error."""
    any_structured_root: bool = False
    """`structuredContent` can be any JSON value, not only an object."""
    tasks: bool = False
    """Clients can request that a call runs as a task. Later revisions have an extension for that."""
    polling: bool = False
    """The server can close the connection of a stream early. The client reconnects for the rest."""
    elicitation: bool = False
    """The server can ask the user to fill in a form."""
    rich_forms: bool = False
    """Forms have a `mode`, choices with titles, multiple choices, and defaults for all fields."""
    url_elicitation: bool = False
    """The server can ask the user to open a URL. The capability `elicitation` lists the modes."""
    elicitation_ids: bool = False
    """URL questions have an ID."""
    sampling_tools: bool = False
    """Sampling can use tools and messages with several blocks, if the capability `sampling` says so."""


_2024_11_05: Final = Revision("2024-11-05")
_2025_03_26: Final = Revision("2025-03-26", batches=True, tool_annotations=True, audio=True, progress_messages=True)
_2025_06_18: Final = replace(
    _2025_03_26,
    name="2025-06-18",
    batches=False,
    titles=True,
    structured_output=True,
    resource_links=True,
    elicitation=True,
)
_2025_11_25: Final = replace(
    _2025_06_18,
    name="2025-11-25",
    icons=True,
    argument_errors_as_results=True,
    tasks=True,
    polling=True,
    rich_forms=True,
    url_elicitation=True,
    elicitation_ids=True,
    sampling_tools=True,
)
_2026_07_28: Final = replace(
    _2025_11_25,
    name="2026-07-28",
    stateless=True,
    any_structured_root=True,
    tasks=False,
    polling=False,
    elicitation_ids=False,
)

HANDSHAKE_REVISIONS: Final = (_2024_11_05, _2025_03_26, _2025_06_18, _2025_11_25)
"""Revisions that begin with `initialize`, the oldest first."""
STATELESS_REVISIONS: Final = (_2026_07_28,)
"""Revisions that clients send in each request."""
REVISIONS: Final = (*HANDSHAKE_REVISIONS, *STATELESS_REVISIONS)

LATEST_HANDSHAKE_REVISION: Final = HANDSHAKE_REVISIONS[-1]
LATEST_STATELESS_REVISION: Final = STATELESS_REVISIONS[-1]
