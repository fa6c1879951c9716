"""The direct path for posted messages and the path through ASGI behave alike."""

import pytest

from tests.fuzz.both_paths import both_paths

CONVERSATIONS = 200


@pytest.mark.parametrize("protected", [pytest.param(True, id="tokens"), pytest.param(False, id="anonymous")])
async def test_both_paths_behave_alike(protected: bool) -> None:
    """Replies, headers, the state of the connection, audit records and refusals are the same on both paths."""
    async with both_paths(protected=protected) as paths:
        assert "\n".join(await paths.differences(1 + protected, range(CONVERSATIONS))) == ""
