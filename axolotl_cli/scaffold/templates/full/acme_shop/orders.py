"""The orders and the stock: an interface, and its implementation with SQLite."""

import asyncio
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Sequence

from acme_shop.models import OrderState

_SCHEMA = """
    CREATE TABLE IF NOT EXISTS orders (number INTEGER PRIMARY KEY, state TEXT NOT NULL, item TEXT NOT NULL);
    CREATE TABLE IF NOT EXISTS stock (item TEXT PRIMARY KEY, amount INTEGER NOT NULL);
    INSERT OR IGNORE INTO orders VALUES (7, 'sent', 'tea'), (8, 'open', 'jam');
    INSERT OR IGNORE INTO stock VALUES ('tea', 12), ('jam', 3);
"""


class IOrders(ABC):
    """The orders and the stock of the shop."""

    @abstractmethod
    async def find(self, number: int) -> OrderState | None:
        """Find an order."""

    @abstractmethod
    async def list(self) -> Sequence[OrderState]:
        """List all orders by number."""

    @abstractmethod
    async def add_stock(self, item: str, amount: int) -> int | None:
        """Add to the stock of an item and return the new amount; None if there is no such item."""


class SqliteOrders(IOrders):
    """Orders in an SQLite file. Its calls run in threads, because they block."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    async def find(self, number: int) -> OrderState | None:
        rows = await asyncio.to_thread(self._select, "SELECT number, state, item FROM orders WHERE number = ?", number)
        return next(iter(rows), None)

    async def list(self) -> Sequence[OrderState]:
        return await asyncio.to_thread(self._select, "SELECT number, state, item FROM orders ORDER BY number")

    async def add_stock(self, item: str, amount: int) -> int | None:
        return await asyncio.to_thread(self._add_stock, item, amount)

    def _select(self, query: str, *values: int) -> Sequence[OrderState]:
        rows = self._connection.execute(query, values)
        return [OrderState(number=number, state=state, item=item) for number, state, item in rows]

    def _add_stock(self, item: str, amount: int) -> int | None:
        with self._connection:
            query = "UPDATE stock SET amount = amount + ? WHERE item = ? RETURNING amount"
            row = self._connection.execute(query, (amount, item)).fetchone()
        return None if row is None else int(row[0])


async def open_orders(path: str) -> AsyncIterator[IOrders]:
    """Open the file when the server starts, and close it when the server stops."""
    connection = await asyncio.to_thread(sqlite3.connect, path, check_same_thread=False)
    try:
        await asyncio.to_thread(connection.executescript, _SCHEMA)
        yield SqliteOrders(connection)
    finally:
        connection.close()
