import pytest
from bookshop.stock import Book, IStock


class FakeStock(IStock):
    def __init__(self, *books: Book) -> None:
        self._books = {book.isbn: book for book in books}

    def find(self, words: str) -> list[Book]:
        return [book for book in self._books.values() if words in book.title]

    def take(self, isbn: str) -> bool:
        book = self._books.get(isbn)
        if book is None or book.copies == 0:
            return False
        book.copies -= 1
        return True


@pytest.fixture
def stock() -> FakeStock:
    return FakeStock(Book(isbn="1", title="Newts", copies=1))
