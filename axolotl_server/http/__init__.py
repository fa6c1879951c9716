"""Streamable HTTP as a raw ASGI application."""

__all__: list[str] = []
