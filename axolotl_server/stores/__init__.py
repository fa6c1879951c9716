"""Stores of what must outlive a connection."""

__all__: list[str] = []
