"""The protocol revisions, each described by what it can express."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, eq=False)
class Revision:
    """One protocol revision: its name on the wire and the features a peer of that age understands."""

    name: str
    stateless: bool = False
    """No handshake: every request carries its version and capabilities, every result its type."""
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
    """`structuredContent` may be any JSON value; before, only an object."""
    tasks: bool = False
    """A client may ask for a call to be run as a task; later revisions have an extension for it."""
    polling: bool = False
    """A server may end the connection of a stream before its time: the client comes back for the rest."""
    elicitation: bool = False
    """A server may ask the user to fill in a form."""
    rich_forms: bool = False
    """Forms name their `mode`, have titled and multiple choices, and defaults on every field."""
    url_elicitation: bool = False
    """A server may ask the user to open a URL; `elicitation` says which modes a client has."""
    elicitation_ids: bool = False
    """A question to open a URL has an id of its own."""
    sampling_tools: bool = False
    """A sample may use tools, a message may hold several blocks; `sampling` says what a client has."""


_2024_11_05: Final = Revision("2024-11-05")
_2025_03_26: Final = Revision("2025-03-26", batches=True, tool_annotations=True, audio=True, progress_messages=True)
_2025_06_18: Final = Revision(
    "2025-06-18",
    tool_annotations=True,
    audio=True,
    progress_messages=True,
    titles=True,
    structured_output=True,
    resource_links=True,
    elicitation=True,
)
_2025_11_25: Final = Revision(
    "2025-11-25",
    tool_annotations=True,
    audio=True,
    progress_messages=True,
    titles=True,
    structured_output=True,
    resource_links=True,
    icons=True,
    argument_errors_as_results=True,
    tasks=True,
    polling=True,
    elicitation=True,
    rich_forms=True,
    url_elicitation=True,
    elicitation_ids=True,
    sampling_tools=True,
)
_2026_07_28: Final = Revision(
    "2026-07-28",
    stateless=True,
    tool_annotations=True,
    audio=True,
    progress_messages=True,
    titles=True,
    structured_output=True,
    resource_links=True,
    icons=True,
    argument_errors_as_results=True,
    any_structured_root=True,
    elicitation=True,
    rich_forms=True,
    url_elicitation=True,
    sampling_tools=True,
)

HANDSHAKE_REVISIONS: Final = (_2024_11_05, _2025_03_26, _2025_06_18, _2025_11_25)
"""Revisions a client reaches by `initialize`, oldest first."""
STATELESS_REVISIONS: Final = (_2026_07_28,)
"""Revisions a client names in every request."""
REVISIONS: Final = (*HANDSHAKE_REVISIONS, *STATELESS_REVISIONS)

LATEST_HANDSHAKE_REVISION: Final = HANDSHAKE_REVISIONS[-1]
LATEST_STATELESS_REVISION: Final = STATELESS_REVISIONS[-1]
