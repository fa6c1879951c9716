import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Iterator

from pydantic import BaseModel


class Book(BaseModel):
    isbn: str
    title: str
    copies: int


# region port
class IStock(ABC):
    @abstractmethod
    def find(self, words: str) -> list[Book]: ...

    @abstractmethod
    def take(self, isbn: str) -> bool: ...


# endregion port


# region sqlite
class SqliteStock(IStock):
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def find(self, words: str) -> list[Book]:
        rows = self._connection.execute(
            "SELECT isbn, title, copies FROM books WHERE title LIKE ? ORDER BY title", [f"%{words}%"]
        )
        return [Book(isbn=isbn, title=title, copies=copies) for isbn, title, copies in rows]

    def take(self, isbn: str) -> bool:
        with self._connection as changing:
            done = changing.execute("UPDATE books SET copies = copies - 1 WHERE isbn = ? AND copies > 0", [isbn])
        return done.rowcount == 1


def open_stock(path: str) -> Iterator[SqliteStock]:
    connection = sqlite3.connect(path, check_same_thread=False)
    connection.execute("CREATE TABLE IF NOT EXISTS books (isbn PRIMARY KEY, title, copies)")
    connection.execute("INSERT OR IGNORE INTO books VALUES ('978-0', 'A Field Guide to Salamanders', 3)")
    connection.commit()
    yield SqliteStock(connection)
    connection.close()


# endregion sqlite
