from booking import Container, Seat

from axolotl_server import connect
from axolotl_server.client.replies import DECLINE, Question


async def test_an_answer() -> None:
    asked: list[str] = []

    def answer(question: Question) -> Seat:
        asked.append(question.message)
        return Seat(kind="aisle", bags=1)

    async with connect(Container(), answer=answer) as client:
        outcome = await client.call("book", {"flight": "AX 7"})
    assert asked == ["How do you want to fly with AX 7?"]
    assert outcome.text == "AX 7, aisle, 1 bags"


async def test_no_answer() -> None:
    async with connect(Container(), answer=lambda question: DECLINE) as client:
        outcome = await client.call("book", {"flight": "AX 7"})
    assert outcome.is_error
    assert outcome.text == "The user declined to answer"
