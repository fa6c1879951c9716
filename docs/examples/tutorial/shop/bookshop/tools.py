from pydantic import BaseModel, Field

from axolotl_core import Context, Declined, ITool, ToolAnnotations, ToolError
from bookshop.stock import Book, IStock


# region find
class Words(BaseModel):
    words: str = Field(min_length=2, description="Words of the title.")


class FindBooks(ITool[Words, list[Book]]):
    name = "find_books"
    description = "Find books by their title."
    annotations = ToolAnnotations(read_only=True)

    def __init__(self, stock: IStock) -> None:
        self._stock = stock

    def execute(self, arguments: Words, context: Context) -> list[Book]:
        return self._stock.find(arguments.words)


# endregion find


# region order
class Order(BaseModel):
    isbn: str = Field(description="The ISBN of the book.")


class Delivery(BaseModel):
    address: str = Field(min_length=5, title="Where should the book be sent?")


class OrderBook(ITool[Order, str]):
    name = "order_book"
    description = "Order one copy of a book."
    timeout_seconds = 10

    def __init__(self, stock: IStock) -> None:
        self._stock = stock

    async def execute(self, arguments: Order, context: Context) -> str:
        try:
            delivery = await context.ask(Delivery, "Your address, please.")
        except Declined:
            return "Nothing was ordered."
        if not self._stock.take(arguments.isbn):
            raise ToolError(f"There is no copy of {arguments.isbn}; search for another book with find_books")
        return f"Ordered. It will be sent to {delivery.address}."


# endregion order
