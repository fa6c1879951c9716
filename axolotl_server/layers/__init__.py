"""The layers around every tool."""

__all__: list[str] = []
