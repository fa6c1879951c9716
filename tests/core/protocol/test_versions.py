"""The revisions, feature by feature, as the protocol's revision matrix has them."""

import pytest

from axolotl_core.protocol.versions import (
    HANDSHAKE_REVISIONS,
    LATEST_HANDSHAKE_REVISION,
    LATEST_STATELESS_REVISION,
    REVISIONS,
    STATELESS_REVISIONS,
    Revision,
)

R1, R2, R3, R4, R5 = "2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"

FEATURES = {
    "batches": [R2],
    "tool_annotations": [R2, R3, R4, R5],
    "audio": [R2, R3, R4, R5],
    "progress_messages": [R2, R3, R4, R5],
    "titles": [R3, R4, R5],
    "structured_output": [R3, R4, R5],
    "resource_links": [R3, R4, R5],
    "icons": [R4, R5],
    "argument_errors_as_results": [R4, R5],
    "stateless": [R5],
    "any_structured_root": [R5],
    "tasks": [R4],
    "polling": [R4],
    "elicitation": [R3, R4, R5],
    "rich_forms": [R4, R5],
    "url_elicitation": [R4, R5],
    "elicitation_ids": [R4],
    "sampling_tools": [R4, R5],
}


@pytest.mark.parametrize("feature", FEATURES)
@pytest.mark.parametrize("revision", REVISIONS, ids=lambda revision: revision.name)
def test_a_revision_has_the_features_of_its_time(revision: Revision, feature: str) -> None:
    """Each feature is available from its first revision on; some only in one."""
    assert getattr(revision, feature) is (revision.name in FEATURES[feature])


def test_the_table_names_every_feature() -> None:
    """A feature that is added gets its row here."""
    assert {*Revision.__struct_fields__} == {"name", *FEATURES}


def test_the_revisions_are_in_the_order_of_time() -> None:
    """All five are served, the oldest first."""
    assert [revision.name for revision in REVISIONS] == [R1, R2, R3, R4, R5]


def test_handshake_and_stateless_revisions() -> None:
    """Four revisions have a handshake, one is stateless."""
    assert [revision.name for revision in HANDSHAKE_REVISIONS] == [R1, R2, R3, R4]
    assert [revision.name for revision in STATELESS_REVISIONS] == [R5]
    assert (LATEST_HANDSHAKE_REVISION.name, LATEST_STATELESS_REVISION.name) == (R4, R5)


def test_a_revision_cannot_be_changed() -> None:
    """Revisions are immutable."""
    with pytest.raises(AttributeError, match="immutable"):
        REVISIONS[0].audio = True  # type: ignore[misc]
