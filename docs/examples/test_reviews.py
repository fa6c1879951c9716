import pytest
from reviews import Container

from axolotl_server import RemoteError, connect


async def test_review() -> None:
    async with connect(Container()) as client:
        answer = await client.get_prompt("review", {"language": "Python", "strict": "true"})
    assert answer.text == "Review this Python code and report all issues."
    assert answer.messages[0]["role"] == "user"


async def test_a_wrong_argument() -> None:
    async with connect(Container()) as client:
        with pytest.raises(RemoteError, match="strict: Input should be a valid boolean") as caught:
            await client.get_prompt("review", {"language": "Python", "strict": "perhaps"})
    assert caught.value.code == -32602
