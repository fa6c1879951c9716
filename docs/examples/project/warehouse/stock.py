class Stock:
    def __init__(self, counts: dict[str, int]) -> None:
        self._counts = counts

    def count(self, article: str) -> int:
        return self._counts.get(article, 0)
