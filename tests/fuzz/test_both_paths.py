"""The direct path for posted messages and the path through ASGI behave alike."""

from tests.fuzz.both_paths import both_paths

CONVERSATIONS = 400


async def test_both_paths_behave_alike() -> None:
    """Replies, headers, the state of the connection, audit records and refusals are the same on both paths."""
    async with both_paths() as paths:
        assert "\n".join(await paths.differences(1, range(CONVERSATIONS))) == ""
