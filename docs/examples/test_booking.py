from booking import Container, Seat

from axolotl_server import DECLINE, Inquiry, connect


async def test_an_answer() -> None:
    asked: list[str] = []

    def answer(inquiry: Inquiry) -> Seat:
        asked.append(inquiry.message)
        return Seat(kind="aisle", bags=1)

    async with connect(Container(), answer=answer) as client:
        outcome = await client.call("book", {"flight": "AX 7"})
    assert asked == ["How do you want to fly with AX 7?"]
    assert outcome.text == "AX 7, aisle, 1 bags"


async def test_no_answer() -> None:
    async with connect(Container(), answer=lambda inquiry: DECLINE) as client:
        outcome = await client.call("book", {"flight": "AX 7"})
    assert outcome.is_error
    assert outcome.text == "The user declined to answer"
