from pydantic import BaseModel, Field

from axolotl_core import Context, ITool, tool
from warehouse.stock import Stock


class Article(BaseModel):
    article: str = Field(description="The name of the article.")


class CountArticle(ITool[Article, int]):
    name = "count_article"
    description = "Return how many units of an article are in stock."

    def __init__(self, stock: Stock) -> None:
        self._stock = stock

    async def execute(self, arguments: Article, context: Context) -> int:
        return self._stock.count(arguments.article)


@tool
async def opening_hours() -> str:
    """Return the opening hours."""
    return "8 to 17"
