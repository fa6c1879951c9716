"""Several processes that serve one address."""

__all__: list[str] = []
